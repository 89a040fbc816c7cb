// DeepSpeed's 1-bit Adam as it computes (its fp16 wrapper's counting, no batch lost), to compare
// with: no bias correction, freeze_step - 1 updates of warm-up, the momentum of a tensor (its f32
// way) or of a whole decay group (its fp16 way) compressed with one RMS scale, padding counted and
// fed back, nothing still. CPU only, not fast.
//
// Its defects that are mended: residuals survive a checkpoint, the norm of the gradient is agreed
// on, and a gradient that is not finite changes nothing on any rank.
#pragma once

#include <memory>

#include "onebit/comm/communicator.h"
#include "onebit/optim/adam_rule.h"
#include "tests/deepspeed/grouped_all_reduce.h"

namespace onebit::deepspeed {

struct OneBitAdamOptions {
  optim::AdamOptions adam;       // bias_correction is ignored, as it is there
  int64_t freeze_step = 2;       // at least: the counter starts at 1
  bool scale_per_tensor = true;  // else one scale a group
};

class OneBitAdam : public optim::Optimizer {
 public:
  OneBitAdam(const OneBitAdamOptions& options, const params::Table& table,
             comm::Communicator& communicator);

  optim::GradientNeed gradient_need() const override;
  optim::Phase phase() const override { return phase_; }
  optim::StepReport step(Context&, params::Table&, const optim::StepInput&) override;
  void save(params::StateWriter&) const override;
  // By as many ranks as have saved.
  void load(Context&, params::Table&, const params::StateReader&) override;
  int64_t saved_bytes(optim::Phase) const override { return state_bytes(); }
  int64_t state_bytes() const override;

  const optim::Moments& moments() const { return moments_; }

 private:
  optim::StepReport compressed_step(Context&, params::Table&, const optim::StepInput&);

  OneBitAdamOptions options_;
  comm::Communicator& communicator_;
  optim::Phase phase_ = optim::Phase::kWarmup;
  int64_t counter_ = 1;                 // the constructor's dummy step is done
  optim::AdamRule rule_, frozen_rule_;  // the second for a variance that stays
  optim::Moments moments_;
  GroupedAllReduce all_reduce_;
};

}  // namespace onebit::deepspeed
