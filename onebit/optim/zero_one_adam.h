// 0/1 Adam (Lu et al., arXiv 2202.06009): Adam whose ranks exchange gradients densely in few
// updates, at one bit an element in others, and nothing in the rest (zero_one_schedule.h), on the
// arithmetic of 1-bit Adam (onebit_adam.h).
//
// The first updates are Adam's. Then the gradients of every update are exchanged at one bit, while
// the variance, common to all ranks, moves only in the updates that average gradients: each takes
// the place of all since the one before. When the variance is frozen (for the published algorithm;
// here it continues as in 1-bit Adam) the local updates begin. With y = g / d of this rank's own
// gradient:
//   local        m = beta1 m + (1 - beta1) y,  value -= lr m / cm + ...,  sum += y
//   synchronize  after k updates the sum of y over them goes to the owners at one bit. They move
//                their momentum as if each update had had its mean over ranks and updates, and send
//                the mean of the momenta after each; all go back to the values of the last
//                synchronization and make k updates with that.
// So values are the same on every rank after each synchronization, bit for bit; between them each
// rank has its own, and the common ones are kept.
#pragma once

#include <memory>

#include "onebit/optim/onebit_adam.h"
#include "onebit/optim/zero_one_schedule.h"

namespace onebit::optim {

struct ZeroOneAdamOptions {
  AdamOptions adam;
  ZeroOneOptions schedule;
  ExchangeOptions exchange;
};

class ZeroOneAdam final : public OneBitAdam {
 public:
  ZeroOneAdam(const ZeroOneAdamOptions& options, const params::Table& table,
              comm::Communicator& communicator, const RunFacts& run);

  void begin_step(Context&, params::Table&, const StepInput&) override;
  StepReport step(Context&, params::Table&, const StepInput&) override;
  void show_common_values(Context&, params::Table&) override;
  void restore_own_values(Context&, params::Table&) override;
  void save(params::StateWriter&) const override;
  void load(Context&, params::Table&, const params::StateReader&) override;
  int64_t saved_bytes(Phase phase) const override;
  int64_t state_bytes() const override;

  // Updates since the last exchange.
  int64_t local_updates() const { return local_updates_; }

 protected:
  const char* state_name() const override { return "zero_one_adam"; }
  UpdatePlan plan() const override;
  void before_sending(Context&, const Bucket&) override;
  void keep_local(Context&, const StepInput&, const Bucket&) override;
  void apply(Context&, params::Table&, const StepInput&) override;
  void discard(Context&, params::Table&, const StepInput&) override;

 private:
  void synchronize(Context&, params::Table&, const StepInput&, double rate_sum);
  void swap_values(Context&, params::Table&);
  void load_local_updates(Context&, params::Table&, const params::StateReader&);

  double beta2_;
  ZeroOneSchedule schedule_;
  // The weight of the variance (AdamRule) after the last update that averaged gradients, and the
  // updates since.
  double variance_weight_ = 0;
  int64_t updates_since_average_ = 0;
  int64_t local_updates_ = 0;
  double rate_sum_ = 0;  // their learning rates
  // With several ranks, f32 [elements]: what the local updates have summed up; the values after the
  // last exchange, valid while there are local updates (this rank's own while common ones are
  // shown).
  Tensor sum_, common_;
  Tensor swapped_;  // f32, a part of the values
  bool shows_common_ = false;
};

std::shared_ptr<const OptimizerRecipe> zero_one_adam_recipe(const ZeroOneAdamOptions& options);
std::shared_ptr<const OptimizerRecipe> read_zero_one_adam(Keys& params);

}  // namespace onebit::optim
