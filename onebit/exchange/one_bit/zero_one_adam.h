// 0/1 Adam (Lu et al., arXiv 2202.06009): Adam whose ranks exchange gradients densely in few
// updates, at one bit per element in others, and not at all in the rest (local_updates.h), with
// the arithmetic of 1-bit Adam (onebit_adam.h).
//
// The first updates are Adam's. Then the gradients of every update are exchanged at one bit, and
// those of some updates are averaged as well. The variance is 1-bit Adam's, which an average enters
// in place of the ranks' own gradients: the published algorithm changes it in these updates alone,
// and nothing bounds what it divides by it in the others. When the published variance is frozen the
// local updates begin. With y = g / d of this rank's own gradient:
//   local        m = beta1 m + (1 - beta1) y,  value -= lr m / cm + ...,  sum += y
//   synchronize  after k updates the sum of y over them is sent to the owners at one bit. They
//                update their momentum as if each update had had the mean over ranks and updates,
//                and send the mean of the momenta after each. All ranks restore the values of the
//                last synchronization and make k updates with that.
// So values are bit-identical on every rank after each synchronization. Between them each rank has
// its own, and the common ones are kept.
#pragma once

#include <memory>

#include "onebit/exchange/one_bit/compressed_optimizer.h"
#include "onebit/exchange/one_bit/local_updates.h"

namespace onebit::optim {

struct ZeroOneAdamOptions {
  AdamOptions adam;
  ZeroOneOptions schedule;
  ExchangeOptions exchange;
};

std::shared_ptr<const OptimizerRecipe> zero_one_adam_recipe(const ZeroOneAdamOptions& options);
std::shared_ptr<const OptimizerRecipe> read_zero_one_adam(Keys& params);

}  // namespace onebit::optim
