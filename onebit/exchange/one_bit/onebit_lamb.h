// 1-bit LAMB (Li et al., arXiv 2104.06069) with exact trust ratios: LAMB in the warm-up, then the
// exchange of 1-bit Adam (onebit_adam.h), from whose momentum u is computed. The published
// algorithm freezes the ratios with the variance and corrects them by estimates. Here the variance
// is still updated, and the ranks sum the norms of what each owns of u before it is coded, without
// the contribution of the workers' signs (updates/onebit_lamb_update.h): the step of a tensor has
// the length of LAMB's, and the same on every rank. That contribution is measured, whatever the
// distribution of the noise. In a tensor of some hundred elements it is off by some percent in a
// single step, and right in the mean.
#pragma once

#include <memory>
#include <vector>

#include "onebit/exchange/one_bit/compressed_optimizer.h"
#include "onebit/exchange/optim/lamb.h"
#include "onebit/math/updates/onebit_lamb_update.h"

namespace onebit::optim {

struct OneBitLambOptions {
  LambOptions lamb;
  FreezeOptions freeze;
  ExchangeOptions exchange;
};

// Moves values by the rule of 1-bit LAMB.
class OneBitLambValues final : public ValueRule {
 public:
  OneBitLambValues(const LambOptions& options, const ParameterTable& table,
                   const OwnedMomentum& momentum);

  void update(Context&, ParameterTable&, const Moments&, AdamRule& adam, const StepInput&) override;
  void begin_move(Context&, const ParameterTable&, const AdamRule& adam,
                  const StepInput& input) override;
  void move(Context&, ParameterTable&, const AdamRule& adam, const Movement&) override;
  void restart() override;
  void save(StateWriter&) const override;
  void load(const StateReader&) override;
  static StateLayout layout(const ParameterTable& table, int sources);

  // The trust ratio of each entry of the table in the last step.
  std::vector<float> trust_ratios() const { return lamb_.trust_ratios(); }

 private:
  bool alone() const { return momentum_.topology().sources() == 1; }

  const OwnedMomentum& momentum_;
  LambRule lamb_;
  std::vector<updates::LambPart> parts_;  // of the elements that this rank owns
  Tensor device_parts_;                   // u8: their copy on a CUDA device, else empty
  Tensor sums_;                           // f64 [tensors, updates::kLambSums]
  Tensor mean_residual_;                  // f32 [owned elements], empty with one rank
};

std::shared_ptr<const OptimizerRecipe> onebit_lamb_recipe(const OneBitLambOptions& options);
std::shared_ptr<const OptimizerRecipe> read_onebit_lamb(Keys& params);

}  // namespace onebit::optim
