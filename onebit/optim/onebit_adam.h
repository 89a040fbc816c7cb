// 1-bit Adam (Tang et al., arXiv 2102.02888) with arithmetic that follows Adam where the published
// one falls behind: docs/compression.md says why and by how much.
//
// Warm-up: Adam on averaged gradients. At its end the momentum is divided by d = sqrt(v / cv) +
// eps and v by cv, where cm, cv = 1 - products of the betas so far (1 without bias correction).
// From then on, with this rank's gradient g:
//   y = g / d                                        each rank's own d
//   a = average over ranks of sign(y + e) s          at its owner; e: what has not been sent yet
//   m = beta1 m + (1 - beta1) a                      at its owner
//   momentum = sign(m + lead (m - m before) + e') s'  from its owner to all
//   value -= lr (momentum / cm + weight_decay value)
// Workers send gradients, not momenta. So the owner's momentum smooths the noise of the signs as it
// smooths the gradient's, and no momentum is overwritten by what was sent, which would miss for ten
// updates what a sign could not say. The scales s pass a small signal nearly whole, and the lead
// makes up for the rest (compress/sub_block_scale.h): Adam becomes unstable when gradients come
// late by a step or two.
//
// ops::onebit_normalize keeps updating d: its shape within 256 elements follows this rank's own
// gradients (1 / ranks as fast in rows that are looked up, of which a rank sees few), its level
// those of all ranks, which travel in turns as one number for each block. noise_ratio.h follows the
// ratio between a rank's squared gradient and the average's.
//
// On two levels (levels.h) g is the mean over a node, and all of this is done for a rank's share of
// the parameters, whose values the node's other ranks then get. The warm-up is the same as on one.
//
// compressed_optimizer.h makes the updates, of the relatives too.
#pragma once

#include <memory>

#include "onebit/optim/compressed_optimizer.h"

namespace onebit::optim {

struct OneBitAdamOptions {
  AdamOptions adam;
  FreezeOptions freeze;
  ExchangeOptions exchange;
};

std::shared_ptr<const OptimizerRecipe> onebit_adam_recipe(const OneBitAdamOptions& options);
std::shared_ptr<const OptimizerRecipe> read_onebit_adam(Keys& params);

}  // namespace onebit::optim
