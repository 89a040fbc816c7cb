// Progressive layer drop: training passes leave layers out, more often later layers and in later
// steps (Zhang and He, arXiv 2010.13369). For layer l of L, from 0, in the step after t updates:
//
//   theta(t) = (1 - theta) exp(-gamma t) + theta          from 1 down to theta
//   p(l, t)  = 1 - l / L (1 - theta(t))                   the first layer is never left out
//
// A layer is computed with probability p. A layer that is left out passes on its input, and its
// parameters get no gradient from that pass. The output of each of the two parts of a computed
// layer is multiplied by 1 / p before it is added to the residual, so that its expectation is the
// output in evaluation, which computes every layer. This requires pre-LN layers, which only add to
// the residual.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/ground/recipe/keys.h"

namespace onebit::model {

struct LayerDropOptions {
  bool enabled = false;
  double theta = 0.5;
  double gamma = 0.001;

  bool operator==(const LayerDropOptions&) const = default;
};

// Reads DeepSpeed's section progressive_layer_drop of a recipe.
LayerDropOptions read_layer_drop(Keys& recipe);

// Without `enabled` every layer is computed.
class LayerDrop {
 public:
  LayerDrop(const LayerDropOptions& options, int64_t layers) : options_(options), layers_(layers) {}

  double theta(int64_t step) const;
  double probability(int64_t layer, int64_t step) const;

  // Draws TrainingPass::layer_factors for one micro-step: 1 / p for layers that are computed, 0 for
  // the others. `factors` [layers] is overwritten. The result depends only on the arguments, which
  // are equal on all ranks: all of them leave out the same layers.
  void draw(uint64_t seed, int64_t step, int64_t micro_step, std::span<float> factors) const;

  // The expected number of layers computed per pass, averaged over steps [from, to).
  double mean_layers(int64_t from, int64_t to) const;

 private:
  LayerDropOptions options_;
  int64_t layers_;
};

}  // namespace onebit::model
