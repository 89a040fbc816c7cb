// The codec and the compressed all-reduce written from their contract, one element after the other,
// with sums in the documented order: results must agree bit for bit.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "onebit/comm/bucket.h"
#include "onebit/compress/sign_codec.h"

namespace onebit::compress::reference {

// A block after compression.
struct Block {
  float scale = 0;
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

// `first`: the place of the block in the buffer `still` describes.
inline Block compress(const std::vector<float>& compensated, const std::vector<uint8_t>& still,
                      int64_t first, ScaleKind kind) {
  std::vector<float> levels(compensated.size());
  int64_t count = 0;
  for (size_t i = 0; i < compensated.size(); ++i) {
    if (is_still(still, first + static_cast<int64_t>(i))) continue;
    const float c = compensated[i];
    levels[i] = kind == ScaleKind::kMeanAbsolute ? std::abs(c) : c * c;
    ++count;
  }
  Block block;
  const float total = std::min(lane_sum(levels), std::numeric_limits<float>::max());
  block.scale = count == 0 ? 0.0f : total / static_cast<float>(count);
  if (kind == ScaleKind::kRootMeanSquare) block.scale = std::sqrt(block.scale);
  for (size_t i = 0; i < compensated.size(); ++i) {
    const bool held = is_still(still, first + static_cast<int64_t>(i));
    const float sent = held ? 0.0f : compensated[i] >= 0 ? block.scale : -block.scale;
    block.decoded.push_back(sent);
    block.residual.push_back(held ? 0.0f : compensated[i] - sent);
  }
  return block;
}

// All ranks of a compressed all-reduce over a flat buffer. As blocks are compressed one by one,
// neither buckets nor chunks change the result.
class AllReduce {
 public:
  AllReduce(int world_size, int64_t elements, ScaleKind kind)
      : worker(static_cast<size_t>(world_size), std::vector<float>(static_cast<size_t>(elements))),
        server(static_cast<size_t>(elements)),
        kind_(kind) {}

  // values[r]: rank r's input. Returns what every rank ends with.
  std::vector<float> run(const std::vector<std::vector<float>>& values,
                         const std::vector<uint8_t>& still) {
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
        const Block block = compress(compensated, still, first, kind_);
        std::ranges::copy(block.residual, worker[rank].begin() + first);
        for (size_t i = 0; i < count; ++i) {
          sum[i] = rank == 0 ? block.decoded[i] : sum[i] + block.decoded[i];
        }
      }
      const float share = 1.0f / static_cast<float>(worker.size());
      for (size_t i = 0; i < count; ++i) sum[i] = sum[i] * share + server[begin + i];
      const Block block = compress(sum, still, first, kind_);
      std::ranges::copy(block.residual, server.begin() + first);
      result.insert(result.end(), block.decoded.begin(), block.decoded.end());
    }
    return result;
  }

  std::vector<std::vector<float>> worker;  // residuals [ranks][elements]
  std::vector<float> server;               // residual [elements], whoever owns it

 private:
  ScaleKind kind_;
};

}  // namespace onebit::compress::reference
