#include "onebit/math/model/layer_drop.h"

#include <cmath>

#include "onebit/ground/base/philox.h"

namespace onebit::model {
namespace {

// Distinct from the streams of batches (batches/permutation.h) and from dropout, which uses
// the seed.
constexpr uint64_t kStream = 0x0e01;

// Uniform in [0, 1).
double drawn(PhiloxKey key, int64_t layer, int64_t step, int64_t micro_step) {
  const auto at = static_cast<uint64_t>(step);
  const PhiloxCounter bits =
      philox({{static_cast<uint32_t>(layer), static_cast<uint32_t>(micro_step),
               static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32)}},
             key);
  const uint64_t high = bits.word[0] >> 5, low = bits.word[1] >> 6;
  return static_cast<double>((high << 26) | low) * 0x1.0p-53;
}

}  // namespace

LayerDropOptions read_layer_drop(Keys& recipe) {
  LayerDropOptions options;
  Keys section = recipe.section("progressive_layer_drop",
                                "training passes skip layers of a pre-LN model at random");
  section.boolean("enabled", options.enabled,
                  "skip layers, more often the later ones and in later steps");
  section.number("theta", options.theta, at_least(0).up_to(1),
                 "layer l of L, counted from 0, is computed with probability 1 - l / L (1 - "
                 "theta(t)), where theta(t) falls from 1 to this value");
  section.number("gamma", options.gamma, at_least(0),
                 "after t updates theta(t) is (1 - theta) exp(-gamma t) + theta");
  return options;
}

double LayerDrop::theta(int64_t step) const {
  if (!options_.enabled) return 1;
  const double gone = std::exp(-options_.gamma * static_cast<double>(step));
  return (1 - options_.theta) * gone + options_.theta;
}

double LayerDrop::probability(int64_t layer, int64_t step) const {
  return 1 - static_cast<double>(layer) / static_cast<double>(layers_) * (1 - theta(step));
}

void LayerDrop::draw(uint64_t seed, int64_t step, int64_t micro_step,
                     std::span<float> factors) const {
  const PhiloxKey key = philox_key(seed ^ (kStream * 0x9E3779B97F4A7C15ull));
  for (size_t layer = 0; layer < factors.size(); ++layer) {
    const auto index = static_cast<int64_t>(layer);
    const double kept = probability(index, step);
    const bool computed = drawn(key, index, step, micro_step) < kept;
    factors[layer] = computed ? static_cast<float>(1 / kept) : 0.0f;
  }
}

double LayerDrop::mean_layers(int64_t from, int64_t to) const {
  const auto layers = static_cast<double>(layers_);
  if (!options_.enabled || to <= from) return layers;
  // The mean of exp(-gamma t) is a geometric series.
  const double gamma = options_.gamma, steps = static_cast<double>(to - from);
  double gone = std::exp(-gamma * static_cast<double>(from));
  if (gamma > 0) gone *= std::expm1(-gamma * steps) / (std::expm1(-gamma) * steps);
  const double theta = (1 - options_.theta) * gone + options_.theta;
  return layers - (layers - 1) / 2 * (1 - theta);
}

}  // namespace onebit::model
