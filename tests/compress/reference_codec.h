// The codec and the compressed all-reduce, implemented from their contract element by element, with
// sums in the documented order: results must agree bit for bit.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/compress/sign_codec.h"

namespace onebit::compress::reference {

constexpr int64_t kRow = 256;  // elements per scale

// A block after compression.
struct Block {
  float base = 0;
  std::vector<int> codes;     // [8]
  std::vector<float> scales;  // [8]
  std::vector<float> decoded, residual;
};

inline bool is_still(const std::vector<uint8_t>& still, int64_t element) {
  return !still.empty() && (still[static_cast<size_t>(element / 8)] >> (element % 8) & 1);
}

// 32 running sums, element i in sum i % 32, then folded in halves.
inline float lane_sum(const std::vector<float>& values) {
  std::array<float, 32> lanes{};
  for (size_t i = 0; i < values.size(); ++i) lanes[i % 32] += values[i];
  for (size_t half = 16; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// Rounds to eight significant bits, to nearest even, by arithmetic instead of bit operations.
inline float rounded_to_bf16(float value) {
  if (value == 0) return 0;
  int exponent = 0;
  std::frexp(value, &exponent);
  const double unit = std::exp2(std::max(exponent, -125) - 8);
  return static_cast<float>(std::min(std::nearbyint(value / unit) * unit, 0x1.FEp127));
}

// `first`: the block's offset in the buffer that `still` describes.
inline Block compress(const std::vector<float>& compensated, const std::vector<uint8_t>& still,
                      int64_t first) {
  std::array<float, 8> means{};
  for (size_t row = 0; row < means.size(); ++row) {
    std::vector<float> levels(kRow);
    int count = 0;
    for (size_t i = 0; i < levels.size(); ++i) {
      const size_t at = row * levels.size() + i;
      if (at >= compensated.size() || is_still(still, first + static_cast<int64_t>(at))) continue;
      levels[i] = std::abs(compensated[at]);
      ++count;
    }
    if (count > 0)
      means[row] = lane_sum(levels) / static_cast<float>(count) * 1.57079633f;  // pi / 2
  }
  Block block;
  const float largest = *std::ranges::max_element(means);
  const bool nothing = largest < 0x1p-63f;
  block.base = nothing ? 0.0f : rounded_to_bf16(largest);
  for (const float mean : means) {
    int code = 0;
    while (code < 15 && (block.base == 0 ||
                         mean < block.base * static_cast<float>(std::exp2(-(code + 0.5) / 2)))) {
      ++code;
    }
    block.codes.push_back(code);
    block.scales.push_back(code == 15 ? 0.0f
                                      : block.base * static_cast<float>(std::exp2(-code / 2.0)));
  }
  for (size_t i = 0; i < compensated.size(); ++i) {
    const bool held = is_still(still, first + static_cast<int64_t>(i));
    const float scale = block.scales[i / kRow];
    const float sent = held ? 0.0f : compensated[i] >= 0 ? scale : -scale;
    block.decoded.push_back(sent);
    block.residual.push_back(held || nothing ? 0.0f : compensated[i] - sent);
  }
  return block;
}

// All ranks of a compressed all-reduce over a flat buffer. Blocks are compressed independently, so
// buckets and chunks do not change the result.
class AllReduce {
 public:
  AllReduce(int world_size, int64_t elements)
      : worker(static_cast<size_t>(world_size), std::vector<float>(static_cast<size_t>(elements))),
        server(static_cast<size_t>(elements)),
        momentum(server) {}

  // values[r]: rank r's input. Returns the result of every rank. With beta > 0 the owner sends a
  // momentum. If the values are the sum of several updates, it sends the mean of their momenta.
  std::vector<float> run(const std::vector<std::vector<float>>& values,
                         const std::vector<uint8_t>& still, float beta = 0, int updates = 1) {
    std::vector<float> result;
    const auto elements = static_cast<int64_t>(server.size());
    for (int64_t first = 0; first < elements; first += kBlockElements) {
      const auto begin = static_cast<size_t>(first);
      const auto count = static_cast<size_t>(std::min(kBlockElements, elements - first));
      std::vector<float> sum(count);
      for (size_t rank = 0; rank < worker.size(); ++rank) {
        std::vector<float> compensated(count);
        for (size_t i = 0; i < count; ++i) {
          compensated[i] = values[rank][begin + i] + worker[rank][begin + i];
        }
        const Block block = compress(compensated, still, first);
        std::ranges::copy(block.residual, worker[rank].begin() + first);
        for (size_t i = 0; i < count; ++i) {
          sum[i] = rank == 0 ? block.decoded[i] : sum[i] + block.decoded[i];
        }
      }
      const float share = 1.0f / static_cast<float>(worker.size());
      for (size_t i = 0; i < count; ++i) {
        const bool held = is_still(still, first + static_cast<int64_t>(i));
        const float average = sum[i] * share;
        const float ahead =
            held ? momentum[begin + i] : send_momentum(begin + i, average, beta, updates);
        sum[i] = (beta > 0 ? ahead : average) + server[begin + i];
      }
      const Block block = compress(sum, still, first);
      std::ranges::copy(block.residual, server.begin() + first);
      result.insert(result.end(), block.decoded.begin(), block.decoded.end());
    }
    return result;
  }

  std::vector<std::vector<float>> worker;  // residuals [ranks][elements]
  std::vector<float> server;               // residuals [elements] of all owners
  std::vector<float> momentum;             // [elements] of all owners

 private:
  // Updates one momentum and returns the value that its owner sends.
  float send_momentum(size_t element, float average, float beta, int updates) {
    float& m = momentum[element];
    const float before = m;
    if (updates == 1) {
      m = beta * m + static_cast<float>(1 - double{beta}) * average;
      if (std::abs(m) < 0x1p-63f) m = 0;
      return m + 0.145f * (m - before);
    }
    double one = double{m}, mean = 0;
    for (int update = 0; update < updates; ++update) {
      one = double{beta} * one + (1 - double{beta}) * double{average} / updates;
      mean += one / updates;
    }
    m = static_cast<float>(one);
    return static_cast<float>(mean + 0.145 * (one - double{before}));
  }
};

}  // namespace onebit::compress::reference
