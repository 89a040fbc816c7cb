// The update of LAMB without its moments, which the caller owns.
#pragma once

#include <string>
#include <vector>

#include "onebit/base/keys.h"
#include "onebit/device/context.h"
#include "onebit/ops/lamb_update.h"
#include "onebit/optim/adam_rule.h"
#include "onebit/optim/moments.h"
#include "onebit/optim/optimizer.h"

namespace onebit::optim {

struct LambOptions {
  AdamOptions adam;  // moments, and the decay that belongs to the update here
  double min_ratio = 0.01, max_ratio = 10;
  bool epsilon_inside_root = false;
};

// Their keys of optimizer.params, but for eps_inside_sqrt.
LambOptions read_lamb_options(Keys& params);
// For the table at the start.
std::string describe(const LambOptions& options);

// LambRule::size_bytes() for a table that need not be allocated.
int64_t lamb_ratio_bytes(const params::Table& table, const LambOptions& options);

class LambRule {
 public:
  LambRule(const LambOptions& options, const params::Table& table);

  // One update from table.gradients(). `rule` keeps the weights of the moments.
  void step(Context&, params::Table&, const Moments&, AdamRule& rule, const StepInput&);

  const LambOptions& options() const { return options_; }
  // The tensors of files, of which a layer may have fused several into one: the ratios do not
  // depend on how a model is computed.
  const std::vector<ops::LambTensor>& tensors() const { return tensors_; }
  View ratios() const { return ratios_.view(); }  // f32 [tensors], of the last step
  std::vector<float> trust_ratios() const;
  int64_t size_bytes() const { return ratios_.view().size_bytes(); }

 private:
  LambOptions options_;
  std::vector<ops::LambTensor> tensors_;
  Tensor ratios_;
};

}  // namespace onebit::optim
