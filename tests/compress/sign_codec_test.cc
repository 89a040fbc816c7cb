#include "onebit/exchange/compress/sign_codec.h"

#include <gtest/gtest.h>

#include <hwy/targets.h>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/compress/reference_codec.h"
#include "tests/compress/test_values.h"
#include "tests/ops/mirror.h"

namespace onebit::compress {
namespace {

using trials::still_of;
using trials::values_of;

template <typename T>
View view_of(std::vector<T>& values) {
  return values.empty() ? View() : View::of(values.data(), {static_cast<int64_t>(values.size())});
}

constexpr uint8_t kUnwritten = 0xA5;  // every byte of a chunk is the codec's to write

struct Encoded {
  std::vector<uint8_t> chunk;
  std::vector<float> residual;
  std::vector<double> squares;
  bool operator==(const Encoded&) const = default;
};

Encoded encode_all(std::vector<float> values, std::vector<float> residual,
                   std::vector<uint8_t> still, std::vector<float> extras = {}, int threads = 1) {
  Context context = Context::cpu(threads);
  const auto elements = static_cast<int64_t>(values.size());
  Encoded encoded;
  encoded.chunk.assign(static_cast<size_t>(chunk_bytes(elements)), kUnwritten);
  encoded.squares.resize(static_cast<size_t>(2 * blocks_in(elements)));
  encoded.residual = std::move(residual);
  encode(context, {.values = view_of(values),
                   .residual = view_of(encoded.residual),
                   .still = view_of(still),
                   .extras = view_of(extras),
                   .chunk = view_of(encoded.chunk),
                   .block_squares = view_of(encoded.squares),
                   .blocks = {0, blocks_in(elements)}});
  return encoded;
}

BlockHeader header_of(const std::vector<uint8_t>& chunk, int64_t block) {
  BlockHeader header;
  std::memcpy(&header, chunk.data() + 8 * block, sizeof header);
  return header;
}

float value_of(uint16_t bits) {
  bf16 number;
  number.bits = bits;
  return static_cast<float>(number);
}

std::vector<int> codes_of(const BlockHeader& header) {
  std::vector<int> codes;
  for (int j = 0; j < 8; ++j) codes.push_back(static_cast<int>(header.codes >> (4 * j) & 15));
  return codes;
}

std::vector<float> decode_all(std::vector<uint8_t> chunk, std::vector<uint8_t> still,
                              int64_t elements, std::vector<float>* extras = nullptr) {
  Context context = Context::cpu(1);
  std::vector<float> values(static_cast<size_t>(elements), -7.0f);
  decode(context, {.chunk = view_of(chunk),
                   .elements = elements,
                   .still = view_of(still),
                   .values = view_of(values),
                   .extras = extras == nullptr ? View() : view_of(*extras),
                   .blocks = {0, blocks_in(elements)}});
  return values;
}

struct Case {
  int64_t elements;
  bool still;
};

class SignCodec : public ::testing::TestWithParam<Case> {};

TEST_P(SignCodec, EqualsTheReferenceBitForBit) {
  const auto [elements, with_still] = GetParam();
  const std::vector<float> values = values_of(1, 0, elements), owed = values_of(2, 0, elements);
  const std::vector<uint8_t> still = with_still ? still_of(elements) : std::vector<uint8_t>();
  const Encoded encoded = encode_all(values, owed, still);
  const std::vector<float> decoded = decode_all(encoded.chunk, still, elements);
  for (int64_t first = 0; first < elements; first += kBlockElements) {
    const int64_t count = std::min(kBlockElements, elements - first);
    std::vector<float> compensated;
    double squares = 0, residual_squares = 0;
    for (int64_t i = first; i < first + count; ++i) {
      const auto at = static_cast<size_t>(i);
      compensated.push_back(values[at] + owed[at]);
      if (!reference::is_still(still, i)) squares += static_cast<double>(values[at]) * values[at];
    }
    const reference::Block block = reference::compress(compensated, still, first);
    const BlockHeader header = header_of(encoded.chunk, first / kBlockElements);
    ASSERT_EQ(value_of(header.base), block.base) << "block at " << first;
    ASSERT_EQ(codes_of(header), block.codes) << "block at " << first;
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
  const auto [elements, with_still] = GetParam();
  const std::vector<float> values = values_of(1, 0, elements), owed = values_of(2, 0, elements);
  const std::vector<uint8_t> still = with_still ? still_of(elements) : std::vector<uint8_t>();
  const Encoded best = encode_all(values, owed, still);
  EXPECT_EQ(encode_all(values, owed, still, {}, 3), best);
  const std::vector<float> decoded = decode_all(best.chunk, still, elements);
  int targets = 0;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_EQ(encode_all(values, owed, still), best) << hwy::TargetName(target);
    EXPECT_EQ(decode_all(best.chunk, still, elements), decoded);
    ++targets;
  }
  hwy::SetSupportedTargetsForTest(0);
  EXPECT_GE(targets, 1);
}

// Encodes, averages over three ranks and decodes on one device, with still bits `still_at` bytes
// after an aligned address.
Encoded round_trip(Context& context, const Case& c, std::vector<float>& decoded,
                   int64_t still_at = 0) {
  const int64_t elements = c.elements, blocks = blocks_in(elements);
  const int64_t size_bytes = chunk_bytes(elements);
  std::vector<uint8_t> still = c.still ? still_of(elements) : std::vector<uint8_t>(), chunks;
  still.insert(still.begin(), static_cast<size_t>(still_at), 0);
  const auto on_device = [&](ops::Mirror& mirror) {
    const ConstView all = mirror(ConstView(view_of(still)));
    return all.empty() ? all : all.rows(still_at, all.elements());
  };
  std::vector<float> extras(static_cast<size_t>(blocks), 0.3f);
  Encoded result{std::vector<uint8_t>(static_cast<size_t>(size_bytes), kUnwritten),
                 values_of(3, 0, elements), std::vector<double>(static_cast<size_t>(2 * blocks))};
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<float> values = values_of(rank, 1, elements), owed = values_of(rank, 2, elements);
    std::vector<uint8_t> chunk(static_cast<size_t>(size_bytes), kUnwritten);
    ops::Mirror mirror(context);
    encode(context, {.values = mirror(ConstView(view_of(values))),
                     .residual = mirror(view_of(owed)),
                     .still = on_device(mirror),
                     .extras = mirror(ConstView(view_of(extras))),
                     .chunk = mirror(view_of(chunk)),
                     .block_squares = {},
                     .blocks = {0, blocks}});
    mirror.bring_back();
    chunks.insert(chunks.end(), chunk.begin(), chunk.end());
  }
  ops::Mirror mirror(context);
  const View chunk = mirror(view_of(result.chunk));
  const ConstView on_still = on_device(mirror);
  average(context, {.chunks = mirror(ConstView(View::of(chunks.data(), {3, size_bytes}))),
                    .residual = mirror(view_of(result.residual)),
                    .still = on_still,
                    .chunk = chunk,
                    .block_squares = mirror(view_of(result.squares)),
                    .blocks = {0, blocks}});
  decoded.assign(static_cast<size_t>(elements), 0.0f);
  decode(context, {.chunk = chunk,
                   .elements = elements,
                   .still = on_still,
                   .values = mirror(view_of(decoded)),
                   .extras = mirror(view_of(extras)),
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

TEST(SignCodecStill, MayBeginAtAnyByteOnCuda) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  Context cpu = Context::cpu(1), cuda = Context::cuda(0);
  constexpr Case kCase{.elements = 3 * 2048 + 70, .still = true};
  std::vector<float> decoded, expected;
  for (const int64_t at : {1, 2, 7}) {  // bytes are loaded instead of words
    EXPECT_EQ(round_trip(cuda, kCase, decoded, at), round_trip(cpu, kCase, expected)) << at;
    EXPECT_EQ(decoded, expected) << at;
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int64_t elements :
       {1, 7, 31, 33, 255, 256, 257, 1000, 2047, 2048, 2049, 2304, 4096, 10000, 40961}) {
    for (const bool still : {false, true}) all.push_back({elements, still});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, SignCodec, ::testing::ValuesIn(cases()));

TEST(SignCodecLayout, IsHeadersThenBitsLeastSignificantFirst) {
  std::vector<float> values(2058, 1.0f);
  values[1] = -1.0f;     // bit 1 of byte 0
  values[2] = -0.0f;     // counts as +
  values[2048] = -3.0f;  // first of the second block
  values[2057] = 3.0f;   // bit 1 of the last byte
  for (size_t i = 2049; i < 2057; ++i) values[i] = -3.0f;
  for (size_t i = 256; i < 512; ++i) values[i] = 0.25f;
  for (size_t i = 512; i < 768; ++i) values[i] = 0;
  const std::vector<float> zeros(values.size());
  const Encoded encoded = encode_all(values, zeros, {}, {0.5f, 7.0f});
  // Two headers, 258 bytes of bits, padded to 4.
  ASSERT_EQ(encoded.chunk.size(), 276u);
  // Base pi / 2 (bf16 3FC9), extra 0.5 (3F00). 0.25 is code 4, nothing is code 15.
  const std::vector<uint8_t> first{0xC9, 0x3F, 0x00, 0x3F, 0x40, 0x0F, 0x00, 0x00};
  EXPECT_TRUE(std::equal(first.begin(), first.end(), encoded.chunk.begin()));
  // Base 3 pi / 2 (4097) of the elements that exist, extra 7.
  const std::vector<uint8_t> second{0x97, 0x40, 0xE0, 0x40, 0xF0, 0xFF, 0xFF, 0xFF};
  EXPECT_TRUE(std::equal(second.begin(), second.end(), encoded.chunk.begin() + 8));
  EXPECT_EQ(encoded.chunk[16], 0xFD);
  EXPECT_EQ(encoded.chunk[17], 0xFF);
  EXPECT_EQ(encoded.chunk[16 + 256], 0x00);
  EXPECT_EQ(encoded.chunk[16 + 257], 0x02);
  EXPECT_EQ(encoded.chunk[274], 0x00);
  EXPECT_EQ(encoded.chunk[275], 0x00);
}

std::vector<float> sizes_by_row(const std::vector<float>& sizes) {
  std::vector<float> values;
  for (const float size : sizes) {
    for (int i = 0; i < 256; ++i) values.push_back(i % 3 == 0 ? -size : size);
  }
  return values;
}

// The reason for sub-blocks: with one common scale, the small row would move like the large ones.
TEST(SignCodecScales, ASmallRowIsNotShakenByLargeOnes) {
  std::vector<float> sizes(8, 1.0f);
  sizes[3] = 1e-3f;
  // Beyond code 14 (1/128): nothing is sent until the residual is large enough for a code.
  std::vector<float> values = sizes_by_row(sizes), owed(values.size()), sent(values.size());
  for (int step = 0; step < 100; ++step) {
    const Encoded encoded = encode_all(values, owed, {});
    owed = encoded.residual;
    const std::vector<float> decoded = decode_all(encoded.chunk, {}, 2048);
    for (size_t i = 0; i < sent.size(); ++i) sent[i] += decoded[i];
    for (size_t i = 768; i < 1024; ++i) ASSERT_LE(std::abs(decoded[i]), 0.0079f) << step;
  }
  // The sum of 100 decoded steps of the small row equals the sum of its inputs, up to one scale.
  for (size_t i = 768; i < 1024; ++i) {
    EXPECT_NEAR(sent[i], 100 * values[i], 0.0079f);
    EXPECT_NEAR(sent[i] + owed[i], 100 * values[i], 1e-6f);
  }
  // Within reach every row has its own scale to a factor of 2^(1/4).
  const std::vector<float> all{1.0f, 0.5f, 0.3f, 0.1f, 0.06f, 0.03f, 0.015f, 0.0075f};
  values = sizes_by_row(all);
  const Encoded encoded = encode_all(values, std::vector<float>(values.size()), {});
  const std::vector<float> decoded = decode_all(encoded.chunk, {}, 2048);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::signbit(decoded[i]), std::signbit(values[i]));
    ASSERT_LE(std::abs(std::log2(decoded[i] / (kSignGain * values[i]))), 0.2505f) << i;
  }
}

TEST(SignCodecScales, WhatIsTooSmallForACodeStaysInTheResidual) {
  std::vector<float> sizes(8, 1e-4f);
  sizes[5] = 1.0f;
  const std::vector<float> values = sizes_by_row(sizes);
  const std::vector<float> owed = sizes_by_row(std::vector<float>(8, 2e-5f));
  const Encoded encoded = encode_all(values, owed, {});
  EXPECT_EQ(codes_of(header_of(encoded.chunk, 0)),
            (std::vector<int>{15, 15, 15, 15, 15, 0, 15, 15}));
  const std::vector<float> decoded = decode_all(encoded.chunk, {}, 2048);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i / 256 == 5) continue;
    ASSERT_EQ(decoded[i], 0.0f);
    ASSERT_EQ(encoded.residual[i], values[i] + owed[i]);
  }
}

TEST(SignCodecScales, CodesChangeHalfWayBetweenScales) {
  for (int k = 0; k < 15; ++k) {
    // The limit is a multiple of the base, which is pi / 2 rounded to bf16.
    const double limit = std::exp2(-(k + 0.5) / 2) * 1.5703125 / double{kSignGain};
    // One element a row: a sum of several would be rounded.
    std::vector<float> values(2048);
    values[0] = 256;
    values[300] = static_cast<float>(256 * limit * (1 + 1e-6));
    values[600] = static_cast<float>(256 * limit * (1 - 1e-6));
    const Encoded encoded = encode_all(values, std::vector<float>(values.size()), {});
    const std::vector<int> codes = codes_of(header_of(encoded.chunk, 0));
    EXPECT_EQ(codes[1], k) << limit;
    EXPECT_EQ(codes[2], k + 1) << limit;
  }
}

TEST(SignCodecScales, TheBaseStaysFinite) {
  for (const float size : {0.0f, 1e-18f, 1e30f, std::numeric_limits<float>::max()}) {
    const std::vector<float> values(2048, size);
    const Encoded encoded = encode_all(values, std::vector<float>(values.size()), {});
    const BlockHeader header = header_of(encoded.chunk, 0);
    EXPECT_EQ(codes_of(header), std::vector<int>(8, size == 0 ? 15 : 0)) << size;
    EXPECT_TRUE(std::isfinite(value_of(header.base))) << size;
    EXPECT_TRUE(std::ranges::all_of(encoded.residual, [](float x) { return std::isfinite(x); }));
    EXPECT_EQ(header.base == 0, size == 0) << size;
  }
}

TEST(SignCodecScales, ABlockOfNearlyNothingOwesNothing) {
  std::vector<float> values(2 * 2048, -1e-20f);
  std::fill(values.begin() + 2048, values.end(), -1e-18f);
  const Encoded encoded = encode_all(values, std::vector<float>(values.size()), {});
  EXPECT_EQ(value_of(header_of(encoded.chunk, 0).base), 0.0f);
  EXPECT_EQ(codes_of(header_of(encoded.chunk, 0)), std::vector<int>(8, 15));
  EXPECT_GT(value_of(header_of(encoded.chunk, 1).base), 0.0f);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(encoded.residual[i] == 0, i < 2048) << i;
  }
  EXPECT_EQ(encoded.squares[1], 0);
}

TEST(SignCodecStill, EntriesStayZeroAndOutOfEveryStatistic) {
  const int64_t elements = 3 * kBlockElements + 500;
  const std::vector<uint8_t> still = still_of(elements);
  std::vector<float> values(static_cast<size_t>(elements), 2.0f);
  for (int64_t i = 0; i < elements; ++i) {
    if (reference::is_still(still, i)) values[static_cast<size_t>(i)] = 1e30f;  // must not be seen
  }
  const Encoded encoded = encode_all(values, std::vector<float>(values.size()), still);
  const float scale = 3.140625f;  // 2 pi / 2 as bf16
  EXPECT_EQ(value_of(header_of(encoded.chunk, 0).base), scale);
  EXPECT_EQ(value_of(header_of(encoded.chunk, 1).base), 0.0f) << "a block of still entries alone";
  EXPECT_EQ(header_of(encoded.chunk, 1).codes, 0xFFFFFFFFu);
  EXPECT_EQ(value_of(header_of(encoded.chunk, 3).base), scale);
  EXPECT_EQ(header_of(encoded.chunk, 3).codes, 0xFFFFFF00u) << "rows past the end";
  const std::vector<float> decoded = decode_all(encoded.chunk, still, elements);
  for (int64_t i = 0; i < elements; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(decoded[at], reference::is_still(still, i) ? 0.0f : scale);
    EXPECT_EQ(encoded.residual[at], reference::is_still(still, i) ? 0.0f : 2.0f - scale);
  }
}

TEST(SignCodecExtras, AreAveragedInRankOrder) {
  Context context = Context::cpu(1);
  const int64_t elements = 2 * kBlockElements + 3;
  std::vector<uint8_t> chunks;
  const std::vector<std::vector<float>> extras{{1, 2, 3}, {0.1f, 0.2f, 0.3f}, {5, 6, 7}};
  for (int rank = 0; rank < 3; ++rank) {
    const Encoded encoded = encode_all(values_of(rank, 0, elements), values_of(9, 0, elements), {},
                                       extras[static_cast<size_t>(rank)]);
    chunks.insert(chunks.end(), encoded.chunk.begin(), encoded.chunk.end());
  }
  const int64_t size_bytes = chunk_bytes(elements);
  std::vector<float> residual(static_cast<size_t>(elements)), result(3);
  std::vector<uint8_t> chunk(static_cast<size_t>(size_bytes));
  average(context, {.chunks = View::of(chunks.data(), {3, size_bytes}),
                    .residual = view_of(residual),
                    .still = {},
                    .chunk = view_of(chunk),
                    .block_squares = {},
                    .blocks = {0, 3}});
  decode_all(chunk, {}, elements, &result);
  const auto rounded = [](float value) { return static_cast<float>(bf16(value)); };
  for (size_t block = 0; block < 3; ++block) {
    const float sum =
        rounded(extras[0][block]) + rounded(extras[1][block]) + rounded(extras[2][block]);
    EXPECT_EQ(result[block], rounded(sum * (1.0f / 3.0f)));
  }
}

TEST(SignCodecExtras, AreZeroWhereNoneAreGiven) {
  const Encoded encoded = encode_all(values_of(0, 0, 5000), values_of(1, 0, 5000), {});
  std::vector<float> extras(3, 5.0f);
  decode_all(encoded.chunk, {}, 5000, &extras);
  EXPECT_EQ(extras, std::vector<float>(3));
}

}  // namespace
}  // namespace onebit::compress
