// 1-bit LAMB (Li et al., arXiv 2104.06069) with exact trust ratios: LAMB in the warm-up, then the
// exchange of 1-bit Adam (onebit_adam.h), whose momentum u is made of. The published algorithm
// freezes the ratios with the variance and corrects them by estimates. Here the variance is still
// updated, and the ranks add up the norms of what each owns of u before it is coded, so that the
// ratio of a tensor is LAMB's in every step and the same on every rank.
#pragma once

#include <memory>
#include <vector>

#include "onebit/ops/onebit_lamb_update.h"
#include "onebit/optim/lamb_rule.h"
#include "onebit/optim/onebit_adam.h"

namespace onebit::optim {

struct OneBitLambOptions {
  LambOptions lamb;
  FreezeOptions freeze;
  ExchangeOptions exchange;
};

class OneBitLamb final : public OneBitAdam {
 public:
  OneBitLamb(const OneBitLambOptions& options, const params::Table& table,
             comm::Communicator& communicator, const RunFacts& run);

  int64_t state_bytes() const override;

  // Of each entry of the table in the last step.
  std::vector<float> trust_ratios() const { return lamb_.trust_ratios(); }

 protected:
  const char* state_name() const override { return "onebit_lamb"; }
  void dense_update(Context&, params::Table&, const Moments&, const StepInput&) override;
  void apply(Context&, params::Table&, const StepInput&) override;

 private:
  void find_ratios(Context&, const params::Table&, double momentum_factor);

  // A range of this rank's share, and its tensors.
  struct Share {
    compress::OwnedRange owned;
    int64_t first_tensor = 0;
    std::vector<ops::LambTensor> tensors;
  };

  LambRule lamb_;
  std::vector<ops::LambPart> parts_;  // of what this rank owns
  Tensor squares_;                    // f64 [tensors, 2]
  std::vector<Share> shares_;
};

std::shared_ptr<const OptimizerRecipe> onebit_lamb_recipe(const OneBitLambOptions& options);
std::shared_ptr<const OptimizerRecipe> read_onebit_lamb(Keys& params);

}  // namespace onebit::optim
