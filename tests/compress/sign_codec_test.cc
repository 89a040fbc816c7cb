#include "onebit/compress/sign_codec.h"

#include <gtest/gtest.h>

#include <hwy/targets.h>
#include <cmath>
#include <cstring>

#include "onebit/base/error.h"
#include "onebit/compress/sign_codec_backend.h"
#include "tests/compress/reference_codec.h"
#include "tests/compress/test_values.h"
#include "tests/ops/mirror.h"

namespace onebit::compress {
namespace {

using testing::still_of;
using testing::values_of;

template <typename T>
View view_of(std::vector<T>& values) {
  return values.empty() ? View() : View::of(values.data(), {static_cast<int64_t>(values.size())});
}

struct Encoded {
  std::vector<uint8_t> chunk;
  std::vector<float> residual;
  std::vector<double> squares;
  bool operator==(const Encoded&) const = default;
};

Encoded encode_all(std::vector<float> values, std::vector<float> residual,
                   std::vector<uint8_t> still, std::vector<float> extras, ScaleKind scale,
                   ExtraType extra, int threads) {
  Context context = Context::cpu(threads);
  const auto elements = static_cast<int64_t>(values.size());
  Encoded encoded;
  encoded.chunk.assign(static_cast<size_t>(chunk_bytes(elements, extra)), 0);
  encoded.squares.resize(static_cast<size_t>(2 * blocks_in(elements)));
  encoded.residual = std::move(residual);
  encode(context, {.values = view_of(values),
                   .residual = view_of(encoded.residual),
                   .still = view_of(still),
                   .extras = view_of(extras),
                   .chunk = view_of(encoded.chunk),
                   .block_squares = view_of(encoded.squares),
                   .scale = scale,
                   .extra = extra,
                   .blocks = {0, blocks_in(elements)}});
  return encoded;
}

std::vector<float> decode_all(std::vector<uint8_t> chunk, std::vector<uint8_t> still,
                              int64_t elements, ExtraType extra, std::vector<float>* extras) {
  Context context = Context::cpu(1);
  std::vector<float> values(static_cast<size_t>(elements), -7.0f);
  decode(context, {.chunk = view_of(chunk),
                   .still = view_of(still),
                   .values = view_of(values),
                   .extras = extras == nullptr ? View() : view_of(*extras),
                   .extra = extra,
                   .blocks = {0, blocks_in(elements)}});
  return values;
}

struct Case {
  int64_t elements;
  bool still;
  ScaleKind scale;
};

class SignCodec : public ::testing::TestWithParam<Case> {};

TEST_P(SignCodec, EqualsTheReferenceBitForBit) {
  const auto [elements, with_still, scale] = GetParam();
  const std::vector<float> values = values_of(1, 0, elements), owed = values_of(2, 0, elements);
  const std::vector<uint8_t> still = with_still ? still_of(elements) : std::vector<uint8_t>();
  const Encoded encoded = encode_all(values, owed, still, {}, scale, ExtraType::kNone, 1);
  const std::vector<float> decoded =
      decode_all(encoded.chunk, still, elements, ExtraType::kNone, nullptr);
  for (int64_t first = 0; first < elements; first += kBlockElements) {
    const int64_t count = std::min(kBlockElements, elements - first);
    std::vector<float> compensated;
    double squares = 0, residual_squares = 0;
    for (int64_t i = first; i < first + count; ++i) {
      const auto at = static_cast<size_t>(i);
      compensated.push_back(values[at] + owed[at]);
      if (!reference::is_still(still, i)) squares += static_cast<double>(values[at]) * values[at];
    }
    const reference::Block block = reference::compress(compensated, still, first, scale);
    float sent_scale;
    std::memcpy(&sent_scale, encoded.chunk.data() + first / kBlockElements * 4, 4);
    ASSERT_EQ(sent_scale, block.scale) << "block at " << first;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(first + i), in = static_cast<size_t>(i);
      ASSERT_EQ(decoded[at], block.decoded[in]) << at;
      ASSERT_EQ(encoded.residual[at], block.residual[in]) << at;
      residual_squares += static_cast<double>(block.residual[in]) * block.residual[in];
    }
    // 64 additions a lane and five folds, of positive terms each rounded once.
    const double tolerance = 72 * 0x1p-24;
    const auto index = static_cast<size_t>(first / kBlockElements);
    EXPECT_NEAR(encoded.squares[2 * index], squares, tolerance * squares);
    EXPECT_NEAR(encoded.squares[2 * index + 1], residual_squares, tolerance * residual_squares);
  }
}

TEST_P(SignCodec, GivesTheSameBitsOnEveryInstructionSetAndThreadCount) {
  const auto [elements, with_still, scale] = GetParam();
  const std::vector<float> values = values_of(1, 0, elements), owed = values_of(2, 0, elements);
  const std::vector<uint8_t> still = with_still ? still_of(elements) : std::vector<uint8_t>();
  const Encoded best = encode_all(values, owed, still, {}, scale, ExtraType::kNone, 1);
  EXPECT_EQ(encode_all(values, owed, still, {}, scale, ExtraType::kNone, 3), best);
  const std::vector<float> decoded =
      decode_all(best.chunk, still, elements, ExtraType::kNone, nullptr);
  int targets = 0;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_EQ(encode_all(values, owed, still, {}, scale, ExtraType::kNone, 1), best)
        << hwy::TargetName(target);
    EXPECT_EQ(decode_all(best.chunk, still, elements, ExtraType::kNone, nullptr), decoded);
    ++targets;
  }
  hwy::SetSupportedTargetsForTest(0);
  EXPECT_GE(targets, 1);
}

// Encodes, averages over three ranks and decodes on one device.
Encoded round_trip(Context& context, const Case& c, std::vector<float>& decoded) {
  const int64_t elements = c.elements, blocks = blocks_in(elements);
  const int64_t size_bytes = chunk_bytes(elements, ExtraType::kBF16);
  std::vector<uint8_t> still = c.still ? still_of(elements) : std::vector<uint8_t>(), chunks;
  std::vector<float> extras(static_cast<size_t>(blocks), 0.3f);
  Encoded result{std::vector<uint8_t>(static_cast<size_t>(size_bytes)), values_of(3, 0, elements),
                 std::vector<double>(static_cast<size_t>(2 * blocks))};
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<float> values = values_of(rank, 1, elements), owed = values_of(rank, 2, elements);
    std::vector<uint8_t> chunk(static_cast<size_t>(size_bytes));
    ops::Mirror mirror(context);
    encode(context, {.values = mirror(ConstView(view_of(values))),
                     .residual = mirror(view_of(owed)),
                     .still = mirror(ConstView(view_of(still))),
                     .extras = mirror(ConstView(view_of(extras))),
                     .chunk = mirror(view_of(chunk)),
                     .block_squares = {},
                     .scale = c.scale,
                     .extra = ExtraType::kBF16,
                     .blocks = {0, blocks}});
    mirror.bring_back();
    chunks.insert(chunks.end(), chunk.begin(), chunk.end());
  }
  ops::Mirror mirror(context);
  const View chunk = mirror(view_of(result.chunk));
  const ConstView on_still = mirror(ConstView(view_of(still)));
  average(context, {.chunks = mirror(ConstView(View::of(chunks.data(), {3, size_bytes}))),
                    .residual = mirror(view_of(result.residual)),
                    .still = on_still,
                    .chunk = chunk,
                    .block_squares = mirror(view_of(result.squares)),
                    .scale = c.scale,
                    .extra = ExtraType::kBF16,
                    .blocks = {0, blocks}});
  decoded.assign(static_cast<size_t>(elements), 0.0f);
  decode(context, {.chunk = chunk,
                   .still = on_still,
                   .values = mirror(view_of(decoded)),
                   .extras = mirror(view_of(extras)),
                   .extra = ExtraType::kBF16,
                   .blocks = {0, blocks}});
  mirror.bring_back();
  return result;
}

TEST_P(SignCodec, GivesTheSameBitsOnCuda) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  Context cpu = Context::cpu(1), cuda = Context::cuda(0);
  std::vector<float> decoded, expected;
  EXPECT_EQ(round_trip(cuda, GetParam(), decoded), round_trip(cpu, GetParam(), expected));
  EXPECT_EQ(decoded, expected);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int64_t elements : {1, 7, 31, 33, 2047, 2048, 2049, 4096, 10000, 40961}) {
    for (const bool still : {false, true}) {
      for (const ScaleKind scale : {ScaleKind::kMeanAbsolute, ScaleKind::kRootMeanSquare}) {
        all.push_back({elements, still, scale});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, SignCodec, ::testing::ValuesIn(cases()));

TEST(SignCodecLayout, IsScalesThenExtrasThenBitsLeastSignificantFirst) {
  std::vector<float> values(2058, 1.0f);
  values[1] = -1.0f;     // bit 1 of byte 0
  values[2] = -0.0f;     // counts as +
  values[2048] = -3.0f;  // first of the second block
  values[2057] = 3.0f;   // bit 1 of the last byte
  for (size_t i = 2049; i < 2057; ++i) values[i] = -3.0f;
  const std::vector<float> zeros(values.size());
  const Encoded encoded =
      encode_all(values, zeros, {}, {0.5f, 7.0f}, ScaleKind::kMeanAbsolute, ExtraType::kBF16, 1);
  // 2 scales, 2 extras of two bytes, 258 bytes of bits, padded to 4.
  ASSERT_EQ(encoded.chunk.size(), 272u);
  float scale;
  std::memcpy(&scale, encoded.chunk.data() + 4, 4);
  EXPECT_EQ(scale, 3.0f) << "a partial block counts its true elements";
  bf16 extra;
  std::memcpy(&extra, encoded.chunk.data() + 10, 2);
  EXPECT_EQ(static_cast<float>(extra), 7.0f);
  EXPECT_EQ(encoded.chunk[12], 0xFD);
  EXPECT_EQ(encoded.chunk[13], 0xFF);
  EXPECT_EQ(encoded.chunk[12 + 256], 0x00);
  EXPECT_EQ(encoded.chunk[12 + 257], 0x02);
  EXPECT_EQ(encoded.chunk[270], 0x00);
}

TEST(SignCodecStill, EntriesStayZeroAndOutOfEveryStatistic) {
  const int64_t elements = 3 * kBlockElements + 500;
  const std::vector<uint8_t> still = still_of(elements);
  std::vector<float> values(static_cast<size_t>(elements), 2.0f);
  for (int64_t i = 0; i < elements; ++i) {
    if (reference::is_still(still, i)) values[static_cast<size_t>(i)] = 1e30f;  // must not be seen
  }
  const Encoded encoded = encode_all(values, std::vector<float>(values.size()), still, {},
                                     ScaleKind::kMeanAbsolute, ExtraType::kNone, 1);
  float scales[4];
  std::memcpy(scales, encoded.chunk.data(), sizeof scales);
  EXPECT_EQ(scales[0], 2.0f);
  EXPECT_EQ(scales[1], 0.0f) << "a block of still entries alone";
  EXPECT_EQ(scales[3], 2.0f);
  const std::vector<float> decoded =
      decode_all(encoded.chunk, still, elements, ExtraType::kNone, nullptr);
  for (int64_t i = 0; i < elements; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(decoded[at], reference::is_still(still, i) ? 0.0f : 2.0f);
    EXPECT_EQ(encoded.residual[at], 0.0f);
  }
}

// Their squares overflow, they do not.
TEST(SignCodecScale, IsFiniteWhateverTheValues) {
  for (const ScaleKind scale : {ScaleKind::kMeanAbsolute, ScaleKind::kRootMeanSquare}) {
    for (const int64_t elements : {kBlockElements, int64_t{100}}) {
      const auto count = static_cast<size_t>(elements);
      std::vector<float> values(count, 1e25f);
      values[3] = -1e30f;
      const Encoded encoded =
          encode_all(values, std::vector<float>(count), {}, {}, scale, ExtraType::kNone, 1);
      const std::vector<float> decoded =
          decode_all(encoded.chunk, {}, elements, ExtraType::kNone, nullptr);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(std::isfinite(decoded[i]));
        ASSERT_GT(decoded[i] * values[i], 0);
        ASSERT_EQ(encoded.residual[i], values[i] - decoded[i]);
      }
    }
  }
}

TEST(SignCodecExtras, AreAveragedInRankOrder) {
  Context context = Context::cpu(1);
  const int64_t elements = 2 * kBlockElements + 3;
  for (const ExtraType extra : {ExtraType::kBF16, ExtraType::kF32}) {
    std::vector<uint8_t> chunks;
    const std::vector<std::vector<float>> extras{{1, 2, 3}, {0.1f, 0.2f, 0.3f}, {5, 6, 7}};
    for (int rank = 0; rank < 3; ++rank) {
      const Encoded encoded =
          encode_all(values_of(rank, 0, elements), values_of(9, 0, elements), {},
                     extras[static_cast<size_t>(rank)], ScaleKind::kMeanAbsolute, extra, 1);
      chunks.insert(chunks.end(), encoded.chunk.begin(), encoded.chunk.end());
    }
    const int64_t size_bytes = chunk_bytes(elements, extra);
    std::vector<float> residual(static_cast<size_t>(elements)), result(3);
    std::vector<uint8_t> chunk(static_cast<size_t>(size_bytes));
    average(context, {.chunks = View::of(chunks.data(), {3, size_bytes}),
                      .residual = view_of(residual),
                      .still = {},
                      .chunk = view_of(chunk),
                      .block_squares = {},
                      .extra = extra,
                      .blocks = {0, 3}});
    decode_all(chunk, {}, elements, extra, &result);
    const auto rounded = [&](float value) {
      return extra == ExtraType::kF32 ? value : static_cast<float>(bf16(value));
    };
    for (size_t block = 0; block < 3; ++block) {
      const float sum =
          rounded(extras[0][block]) + rounded(extras[1][block]) + rounded(extras[2][block]);
      EXPECT_EQ(result[block], rounded(sum * (1.0f / 3.0f)));
    }
  }
}

TEST(SignCodecCuda, IsAnErrorThatNamesTheBuildOption) {
  Context context = Context::cpu(1);
  try {
    encode_cuda(context, {});
    GTEST_SKIP() << "CUDA is built in";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("ONEBIT_CUDA"), std::string::npos);
  }
}

}  // namespace
}  // namespace onebit::compress
