// DeepSpeed's arithmetic of 1-bit LAMB for comparisons (with the counting of its fp16 wrapper, and
// without losing a batch). There is no bias correction, and freeze_step - 1 updates of warm-up, in
// which a running mean of each tensor's trust ratio grows from zero. Then the variance and that
// mean are frozen. The momenta of all tensors are sent in one buffer with one scale, each
// multiplied by its own factor, which makes their sizes similar. The frozen ratio is corrected by
// the largest change of sqrt(variance) in gradients restored from the momentum. The padding of the
// buffer is fed back. CPU only, not fast.
//
// It corrects the same defects of DeepSpeed as onebit_adam.h.
#pragma once

#include <memory>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/optimizer.h"
#include "tests/deepspeed/all_reduce.h"

namespace onebit::deepspeed {

struct OneBitLambOptions {
  optim::AdamOptions adam;  // bias_correction is ignored, as in DeepSpeed
  int64_t freeze_step = 2;  // at least: the counter starts at 1
  double min_ratio = 0.01, max_ratio = 10;
  double ratio_beta = 0.9;
  double factor_min = 0.5, factor_max = 4, factor_threshold = 0.1;
};

class OneBitLamb : public optim::Optimizer {
 public:
  OneBitLamb(const OneBitLambOptions& options, const ParameterTable& table,
             comm::Communicator& communicator);

  optim::GradientNeed gradient_need() const override;
  optim::Phase phase() const override { return phase_; }
  optim::StepReport step(Context&, ParameterTable&, const optim::StepInput&) override;
  void save(optim::StateWriter&) const override;
  // Needs the number of ranks that saved.
  void load(Context&, ParameterTable&, const optim::StateReader&) override;
  int64_t saved_bytes(optim::Phase) const override { return state_bytes(); }
  int64_t state_bytes() const override;

  // For tensor `tensor`: the factor of the learning rate in the last step, the frozen ratio, and
  // the factor of its momentum in the buffer.
  double coefficient(size_t tensor) const { return tensors_[tensor].coefficient; }
  double frozen_ratio(size_t tensor) const { return tensors_[tensor].frozen_ratio; }
  double scaling(size_t tensor) const { return tensors_[tensor].scaling; }
  // All momenta, then the padding.
  const std::vector<float>& momentum() const { return momentum_; }

 private:
  struct TensorState {
    Range range;        // in the table
    int64_t place = 0;  // in the buffers here
    double weight_decay = 0;
    double frozen_ratio = 0, last_factor = 1, scaling = 0, coefficient = 0;

    int64_t elements() const { return range.elements(); }
  };

  void warm_up(TensorState& tensor, ParameterTable&, const optim::StepInput&);
  void freeze();
  optim::StepReport compressed_step(Context&, ParameterTable&, const optim::StepInput&);
  void follow_variance(const TensorState& tensor, const std::vector<float>& before);
  void move(TensorState& tensor, ParameterTable&, const optim::StepInput&);

  OneBitLambOptions options_;
  comm::Communicator& communicator_;
  optim::Phase phase_ = optim::Phase::kWarmup;
  int64_t counter_ = 1;  // after the constructor's dummy step
  std::vector<TensorState> tensors_;
  std::vector<float> momentum_, variance_, fresh_variance_;
  AllReduce all_reduce_;
};

}  // namespace onebit::deepspeed
