// Progressive layer drop: a training pass leaves layers out, the later ones and those of later
// steps more often (Zhang and He, arXiv 2010.13369). For layer l of L, counted from 0, in a step
// that t updates precede:
//
//   theta(t) = (1 - theta) exp(-gamma t) + theta          from 1 down to theta
//   p(l, t)  = 1 - l / L (1 - theta(t))                   the first layer is never left out
//
// A layer is computed with the probability p. One that is left out passes on its input, and its
// parameters get no gradient from that pass. What each of the two parts of one that is computed
// adds to the residual is multiplied by 1 / p, so that its expectation is what evaluation, which
// computes every layer, adds. That needs pre-LN layers, which do nothing but add.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/base/keys.h"

namespace onebit::model {

struct LayerDropOptions {
  bool enabled = false;
  double theta = 0.5;
  double gamma = 0.001;

  bool operator==(const LayerDropOptions&) const = default;
};

// DeepSpeed's section progressive_layer_drop of a recipe.
LayerDropOptions read_layer_drop(Keys& recipe);

// Without `enabled` every layer is computed.
class LayerDrop {
 public:
  LayerDrop(const LayerDropOptions& options, int64_t layers) : options_(options), layers_(layers) {}

  double theta(int64_t step) const;
  double probability(int64_t layer, int64_t step) const;

  // What TrainingPass::layer_factors takes, for one micro-step: 1 / p of the layers that are
  // computed, 0 of the others. `factors` [layers] is overwritten. A pure function of its arguments,
  // which ranks have in common: all of them leave out the same layers.
  void draw(uint64_t seed, int64_t step, int64_t micro_step, std::span<float> factors) const;

  // The expected number of layers that a pass computes, in the mean over steps [from, to).
  double mean_layers(int64_t from, int64_t to) const;

 private:
  LayerDropOptions options_;
  int64_t layers_;
};

}  // namespace onebit::model
