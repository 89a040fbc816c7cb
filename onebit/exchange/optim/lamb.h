// LAMB (You et al., arXiv 1904.00962) with DeepSpeed's limits of the trust ratio, on gradients
// averaged over ranks.
#pragma once

#include <memory>
#include <vector>

#include "onebit/exchange/optim/lamb_rule.h"
#include "onebit/exchange/optim/optimizer_recipe.h"

namespace onebit::optim {

class Lamb : public Optimizer {
 public:
  Lamb(const LambOptions& options, const ParameterTable& table);

  GradientNeed gradient_need() const override { return GradientNeed::kAveragedOverRanks; }
  Phase phase() const override { return Phase::kDense; }
  StepReport step(Context&, ParameterTable&, const StepInput&) override;
  void save(StateWriter&) const override;
  void load(Context&, ParameterTable&, const StateReader&) override;
  int64_t saved_bytes(Phase phase) const override { return sizes_.saved_bytes(phase); }
  int64_t state_bytes() const override { return sizes_.memory_bytes(phase()); }

  // The trust ratio of each entry of the table in the last step.
  std::vector<float> trust_ratios() const { return lamb_.trust_ratios(); }

 private:
  AdamRule rule_;
  LambRule lamb_;
  Moments moments_;
  StateSizes sizes_;
};

std::shared_ptr<const OptimizerRecipe> lamb_recipe(const LambOptions& options);
std::shared_ptr<const OptimizerRecipe> read_lamb(Keys& params);

}  // namespace onebit::optim
