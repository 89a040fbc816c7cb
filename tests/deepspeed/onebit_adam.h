// DeepSpeed's arithmetic of 1-bit Adam for comparisons (with the counting of its fp16 wrapper, and
// without losing a batch): no bias correction, freeze_step - 1 updates of warm-up, one RMS scale
// for the momentum of a tensor (as in f32) or of a decay group (as in fp16), padding counted and
// fed back, no still elements. CPU only, not fast.
//
// It corrects these defects of DeepSpeed: residuals survive a checkpoint, ranks agree on the norm
// of the gradient, and a non-finite gradient changes nothing on any rank.
#pragma once

#include <memory>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/adam.h"
#include "tests/deepspeed/grouped_all_reduce.h"

namespace onebit::deepspeed {

struct OneBitAdamOptions {
  optim::AdamOptions adam;       // bias_correction is ignored, as in DeepSpeed
  int64_t freeze_step = 2;       // at least: the counter starts at 1
  bool scale_per_tensor = true;  // else one scale per group
};

class OneBitAdam : public optim::Optimizer {
 public:
  OneBitAdam(const OneBitAdamOptions& options, const ParameterTable& table,
             comm::Communicator& communicator);

  optim::GradientNeed gradient_need() const override;
  optim::Phase phase() const override { return phase_; }
  optim::StepReport step(Context&, ParameterTable&, const optim::StepInput&) override;
  void save(optim::StateWriter&) const override;
  // Needs the number of ranks that saved.
  void load(Context&, ParameterTable&, const optim::StateReader&) override;
  int64_t saved_bytes(optim::Phase) const override { return state_bytes(); }
  int64_t state_bytes() const override;

  const optim::Moments& moments() const { return moments_; }

 private:
  optim::StepReport compressed_step(Context&, ParameterTable&, const optim::StepInput&);

  OneBitAdamOptions options_;
  comm::Communicator& communicator_;
  optim::Phase phase_ = optim::Phase::kWarmup;
  int64_t counter_ = 1;                 // after the constructor's dummy step
  optim::AdamRule rule_, frozen_rule_;  // the second keeps the variance
  optim::Moments moments_;
  GroupedAllReduce all_reduce_;
};

}  // namespace onebit::deepspeed
