// Adam and AdamW on gradients averaged over ranks.
#pragma once

#include "onebit/optim/moments.h"
#include "onebit/optim/optimizer.h"

namespace onebit::optim {

class Adam : public Optimizer {
 public:
  Adam(const OptimizerConfig& config, const params::Table& table);

  GradientNeed gradient_need() const override { return GradientNeed::kAveragedOverRanks; }
  Phase phase() const override { return Phase::kDense; }
  StepReport step(Context&, params::Table&, const StepInput&) override;
  void save(params::StateWriter&) const override;
  void load(Context&, params::Table&, const params::StateReader&) override;
  int64_t saved_bytes(Phase) const override { return moments_.size_bytes(); }
  int64_t state_bytes() const override { return moments_.size_bytes(); }

 private:
  OptimizerConfig config_;
  Moments moments_;
};

}  // namespace onebit::optim
