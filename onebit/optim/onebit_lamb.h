// 1-bit LAMB (Li et al., arXiv 2104.06069) with exact trust ratios: LAMB in the warm-up, then the
// exchange of 1-bit Adam (onebit_adam.h), from whose momentum u is computed. The published
// algorithm freezes the ratios with the variance and corrects them by estimates. Here the variance
// is still updated, and the ranks sum the norms of what each owns of u before it is coded, minus
// the contribution of the workers' signs, so that the ratio of a tensor is LAMB's in every step and
// the same on every rank.
#pragma once

#include <memory>
#include <vector>

#include "onebit/ops/onebit_lamb_update.h"
#include "onebit/optim/compressed_optimizer.h"
#include "onebit/optim/lamb_rule.h"

namespace onebit::optim {

struct OneBitLambOptions {
  LambOptions lamb;
  FreezeOptions freeze;
  ExchangeOptions exchange;
};

// How the values of 1-bit LAMB move.
class OneBitLambValues final : public ValueRule {
 public:
  OneBitLambValues(const LambOptions& options, const params::Table& table,
                   const SignExchange& exchange);

  void update(Context&, params::Table&, const Moments&, AdamRule& adam, const StepInput&) override;
  void begin_move(Context&, const params::Table&, const AdamRule& adam, double beta1) override;
  void move(Context&, params::Table&, const AdamRule& adam, const Movement&) override;
  int64_t size_bytes() const override;
  // The size for a table that may be unallocated.
  static int64_t size_bytes_of(const params::Table& table, const LambOptions& options);

  // The trust ratio of each entry of the table in the last step.
  std::vector<float> trust_ratios() const { return lamb_.trust_ratios(); }

 private:
  const SignExchange& exchange_;
  LambRule lamb_;
  std::vector<ops::LambPart> parts_;           // of the elements that this rank owns
  std::vector<ops::LambPart> residual_parts_;  // of its share
  Tensor squares_;                             // f64 [tensors, 2]
  Tensor residual_squares_;                    // f64 [tensors]
};

std::shared_ptr<const OptimizerRecipe> onebit_lamb_recipe(const OneBitLambOptions& options);
std::shared_ptr<const OptimizerRecipe> read_onebit_lamb(Keys& params);

}  // namespace onebit::optim
