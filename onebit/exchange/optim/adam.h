// Adam and AdamW on gradients averaged over ranks, and their update, which 1-bit Adam has too.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/optim/moments.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/optimizer_recipe.h"
#include "onebit/ground/recipe/keys.h"
#include "onebit/math/device/context.h"
#include "onebit/math/updates/adam_update.h"

namespace onebit::optim {

// The options of Adam in a recipe, shared by the optimizers that are based on it.
struct AdamOptions {
  double learning_rate = 1e-3;  // base rate of the schedules that scale one
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled_decay = true;  // adam_w_mode: decay the value. Otherwise add decay * value to
                                // gradients
  bool bias_correction = true;
};

// Reads the keys of optimizer.params that determine the moments and which values decay.
AdamOptions read_moment_options(Keys& params);
// Reads the same keys, and how Adam decays.
AdamOptions read_adam_options(Keys& params);

// The text for the start table: "lr 0.001, betas 0.9 0.999, eps 1e-08, decay 0.01".
std::string describe(const AdamOptions& options);

// The update without the moments, which belong to the caller.
class AdamRule {
 public:
  AdamRule(const AdamOptions& options, const ParameterTable& table);

  // Makes one update from table.gradients().
  void step(Context&, ParameterTable&, const Moments&, const StepInput&);

  const AdamOptions& options() const { return options_; }
  double beta1(const StepInput& input) const { return input.beta1.value_or(options_.beta1); }
  // The ranges of a part of the table, counted from its start, each with its weight decay and its
  // rate, for the groups of StepInput.
  std::vector<updates::UpdateRange> ranges_in(Range part,
                                              std::span<const UpdateGroup> groups) const;

  // The divisors that remove the bias of the moments: 1 - product of the betas so far, which is
  // right for a cycled momentum too. They are 1 without bias correction.
  double momentum_weight() const;
  double variance_weight() const;
  // The fraction of the unbiased variance that the next update keeps: beta2, corrected for bias.
  double next_variance_memory() const;
  // What no element of the momentum may exceed after an update with this variance_memory, in units
  // of the root of the unbiased variance: the largest that Adam's own can be, whose variance
  // contains every gradient of the momentum. With q = beta1^2 / beta2 that is, by the inequality of
  // Cauchy and Schwarz, (1 - beta1) / sqrt((1 - variance_memory) (1 - q)), and at least three times
  // the momentum of a constant gradient. No limit if q is 1 or larger.
  double momentum_limit(const StepInput& input, double variance_memory) const;
  // Counts an update. step() calls it itself.
  void advance(const StepInput& input);

  // Saves and loads the weights.
  void save(StateWriter&) const;
  void load(const StateReader&);

 private:
  AdamOptions options_;
  std::vector<ParameterTable::DecayRange> ranges_;
  double momentum_weight_ = 0, variance_weight_ = 0;
};

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
