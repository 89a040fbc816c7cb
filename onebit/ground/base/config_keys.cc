#include "onebit/ground/base/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "onebit/ground/base/error.h"

namespace onebit {

std::string default_label(size_t id) {
  return fmt::format("LABEL_{}", id);
}

bool are_default_labels(std::span<const std::string> labels) {
  for (size_t id = 0; id < labels.size(); ++id) {
    if (labels[id] != default_label(id)) return false;
  }
  return true;
}

namespace {

struct Limit {
  const char* key;
  int64_t ModelSizes::*size;
  int64_t most;
};

// Ids of tokens, positions and segments are 32 bits wide. The other limits are far beyond any
// encoder.
constexpr Limit kLimits[] = {
    {config_keys::kVocabSize, &ModelSizes::vocab_size, int64_t{1} << 30},
    {config_keys::kHiddenSize, &ModelSizes::hidden_size, int64_t{1} << 20},
    {config_keys::kLayers, &ModelSizes::layers, 10'000},
    {config_keys::kHeads, &ModelSizes::heads, int64_t{1} << 20},
    {config_keys::kIntermediateSize, &ModelSizes::intermediate_size, int64_t{1} << 22},
    {config_keys::kPositions, &ModelSizes::positions, int64_t{1} << 24},
    {config_keys::kSegments, &ModelSizes::segments, int64_t{1} << 24},
};

// 4 TiB of f32 values.
constexpr double kMaxParameters = double{int64_t{1} << 40};

// The number of parameters in matrices. The others are few.
double parameters_of(const ModelSizes& sizes) {
  const auto hidden = static_cast<double>(sizes.hidden_size);
  const double rows = static_cast<double>(sizes.vocab_size) + static_cast<double>(sizes.positions) +
                      static_cast<double>(sizes.segments);
  const double columns = 4 * hidden + 2 * static_cast<double>(sizes.intermediate_size);
  return hidden * (rows + static_cast<double>(sizes.layers) * columns);
}

}  // namespace

int64_t largest_size(std::string_view key) {
  const auto found = std::find_if(std::begin(kLimits), std::end(kLimits),
                                  [&](const Limit& limit) { return key == limit.key; });
  ONEBIT_INVARIANT(found != std::end(kLimits));
  return found->most;
}

std::optional<SizeFlaw> find_size_flaw(const ModelSizes& sizes) {
  const Limit* largest = nullptr;
  double largest_share = 0;
  for (const Limit& limit : kLimits) {
    const int64_t size = sizes.*limit.size;
    if (size < 1 || size > limit.most) {
      return SizeFlaw{limit.key,
                      fmt::format("is {}; it must be at least 1 and at most {}", size, limit.most)};
    }
    const double share = static_cast<double>(size) / static_cast<double>(limit.most);
    if (share > largest_share) {
      largest = &limit;
      largest_share = share;
    }
  }
  const double parameters = parameters_of(sizes);
  if (parameters <= kMaxParameters) return std::nullopt;
  return SizeFlaw{largest->key,
                  fmt::format("is {}: with the other sizes the model has {:.2g} parameters; at "
                              "most 2^40 ({:.2g}) are supported",
                              sizes.*largest->size, parameters, kMaxParameters)};
}

}  // namespace onebit
