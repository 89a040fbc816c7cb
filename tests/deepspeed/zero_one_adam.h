// DeepSpeed's arithmetic of 0/1 Adam for comparisons (with the counting of its fp16 wrapper, and
// without losing a batch): no bias correction, and updates are numbered from 2. Until the variance
// is frozen, gradients are averaged in updates whose number is a multiple of an interval, and sent
// at one bit in the others. Then ranks make local updates, and at intervals send their movement, in
// units of the momentum. Ranks return to the values of the last synchronization by subtraction, and
// compute the momentum from the average movement, including weight decay. CPU only, not fast.
//
// It corrects the same defects of DeepSpeed as onebit_adam.h, and three more. The counters survive
// a checkpoint. A single rank updates its momentum in every update. The momentum stays if all rates
// since the last synchronization were 0.
#pragma once

#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/optimizer.h"
#include "tests/deepspeed/grouped_all_reduce.h"

namespace onebit::deepspeed {

struct ZeroOneAdamOptions {
  optim::AdamOptions adam;  // bias_correction is ignored, as in DeepSpeed
  int64_t variance_freeze = 100000, variance_scaler = 16;
  int64_t local_scaler = 32678, local_limit = 16;
  bool scale_per_tensor = true;  // else one scale per group
};

class ZeroOneAdam : public optim::Optimizer {
 public:
  ZeroOneAdam(const ZeroOneAdamOptions& options, const ParameterTable& table,
              comm::Communicator& communicator);

  optim::GradientNeed gradient_need() const override;
  // Compressed: the variance is frozen.
  optim::Phase phase() const override { return phase_; }
  optim::StepReport step(Context&, ParameterTable&, const optim::StepInput&) override;
  void save(optim::StateWriter&) const override;
  // Needs the number of ranks that saved.
  void load(Context&, ParameterTable&, const optim::StateReader&) override;
  int64_t saved_bytes(optim::Phase) const override { return state_bytes(); }
  int64_t state_bytes() const override;

  // The intervals after the last step.
  int64_t variance_interval() const { return variance_interval_; }
  int64_t local_interval() const { return local_interval_; }
  // Whether ranks have made local updates since the last synchronization.
  bool is_local() const { return rate_sum_ > 0; }

 private:
  bool averages_next() const;
  // Updates the momentum and the values. Optionally accumulates the movement.
  void move(ParameterTable&, const optim::StepInput&, const float* gradients, double gradient_scale,
            bool keep);
  void update_variance(const ParameterTable&, const optim::StepInput&);
  void early_step(ParameterTable&, const optim::StepInput&);
  void late_step(ParameterTable&, const optim::StepInput&);
  void synchronize(ParameterTable&);
  void count_average();

  ZeroOneAdamOptions options_;
  comm::Communicator& communicator_;
  optim::Phase phase_ = optim::Phase::kWarmup;
  int64_t counter_ = 1;  // after the constructor's dummy step
  int64_t variance_interval_ = 1, averages_ = 0;
  int64_t local_interval_ = 1, updates_in_interval_ = 0;
  double rate_sum_ = 0;
  std::vector<double> weight_decay_;                   // [elements]
  std::vector<float> momentum_, variance_, movement_;  // [elements]
  GroupedAllReduce all_reduce_;
};

}  // namespace onebit::deepspeed
