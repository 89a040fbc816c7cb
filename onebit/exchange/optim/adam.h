// Adam and AdamW on gradients averaged over ranks.
#pragma once

#include <memory>

#include "onebit/exchange/optim/adam_rule.h"
#include "onebit/exchange/optim/optimizer_recipe.h"

namespace onebit::optim {

class Adam : public Optimizer {
 public:
  Adam(const AdamOptions& options, const ParameterTable& table);

  GradientNeed gradient_need() const override { return GradientNeed::kAveragedOverRanks; }
  Phase phase() const override { return Phase::kDense; }
  StepReport step(Context&, ParameterTable&, const StepInput&) override;
  void save(StateWriter&) const override;
  void load(Context&, ParameterTable&, const StateReader&) override;
  int64_t saved_bytes(Phase phase) const override { return sizes_.saved_bytes(phase); }
  int64_t state_bytes() const override { return sizes_.memory_bytes(phase()); }

 private:
  AdamRule rule_;
  Moments moments_;
  StateSizes sizes_;
};

std::shared_ptr<const OptimizerRecipe> adam_recipe(const AdamOptions& options);
std::shared_ptr<const OptimizerRecipe> read_adam(Keys& params);

}  // namespace onebit::optim
