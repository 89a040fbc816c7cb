// The update of LAMB without its moments, which belong to the caller.
#pragma once

#include <string>
#include <vector>

#include "onebit/exchange/optim/adam_rule.h"
#include "onebit/exchange/optim/moments.h"
#include "onebit/exchange/optim/optimizer.h"
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

}  // namespace onebit::optim
