// LAMB (You et al., arXiv 1904.00962) with DeepSpeed's limits of the trust ratio, on gradients
// averaged over ranks, and its update, which 1-bit LAMB has too.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/moments.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/optimizer_recipe.h"
#include "onebit/ground/recipe/keys.h"
#include "onebit/math/device/context.h"
#include "onebit/math/updates/lamb_update.h"

namespace onebit::optim {

struct LambOptions {
  AdamOptions adam;  // moments, and the decay, which is part of the update here
  double min_ratio = 0.01, max_ratio = 10;
  bool epsilon_inside_root = false;
};

// Reads their keys of optimizer.params, except eps_inside_sqrt.
LambOptions read_lamb_options(Keys& params);
// The text for the start table.
std::string describe(const LambOptions& options);

// The update without the moments, which belong to the caller.
class LambRule {
 public:
  LambRule(const LambOptions& options, const ParameterTable& table);

  // Makes one update from table.gradients(). `rule` keeps the weights of the moments.
  void step(Context&, ParameterTable&, const Moments&, AdamRule& rule, const StepInput&);

  const LambOptions& options() const { return options_; }
  // The tensors of model files, several of which a layer may have fused into one: so ratios do not
  // depend on how a model is computed. Their weight decays and rates are those for the groups of
  // StepInput.
  std::vector<updates::LambTensor> tensors(std::span<const UpdateGroup> groups) const;
  View ratios() const { return ratios_.view(); }  // f32 [tensors], of the last step
  std::vector<float> trust_ratios() const;
  static StateLayout layout(const ParameterTable& table);

 private:
  LambOptions options_;
  std::vector<updates::LambTensor> tensors_;
  struct Settings {
    bool decay;
    int group;
  };
  std::vector<Settings> settings_;  // [tensors]
  Tensor ratios_;
};

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
