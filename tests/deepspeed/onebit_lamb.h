// DeepSpeed's 1-bit LAMB as it computes (its fp16 wrapper's counting, no batch lost), to compare
// with: no bias correction; freeze_step - 1 updates of warm-up, in which a running mean of each
// tensor's trust ratio grows from zero; then the variance and that mean are frozen, the momenta of
// all tensors travel in one buffer with one scale, each multiplied by a factor of its own that
// makes them alike in size, and the frozen ratio is corrected by the largest change of
// sqrt(variance) that the gradients restored from the momentum show. The padding of the buffer is
// fed back. CPU only, not fast.
//
// Its defects that are mended: as of 1-bit Adam (onebit_adam.h).
#pragma once

#include <memory>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/optim/adam_options.h"
#include "onebit/optim/optimizer.h"
#include "tests/deepspeed/all_reduce.h"

namespace onebit::deepspeed {

struct OneBitLambOptions {
  optim::AdamOptions adam;  // bias_correction is ignored, as it is there
  int64_t freeze_step = 2;  // at least: the counter starts at 1
  double min_ratio = 0.01, max_ratio = 10;
  double ratio_beta = 0.9;
  double factor_min = 0.5, factor_max = 4, factor_threshold = 0.1;
};

class OneBitLamb : public optim::Optimizer {
 public:
  OneBitLamb(const OneBitLambOptions& options, const params::Table& table,
             comm::Communicator& communicator);

  optim::GradientNeed gradient_need() const override;
  optim::Phase phase() const override { return phase_; }
  optim::StepReport step(Context&, params::Table&, const optim::StepInput&) override;
  void save(params::StateWriter&) const override;
  // By as many ranks as have saved.
  void load(Context&, params::Table&, const params::StateReader&) override;
  int64_t saved_bytes(optim::Phase) const override { return state_bytes(); }
  int64_t state_bytes() const override;

  // Of tensor `tensor`: what the rate was multiplied by in the last step, the frozen ratio, and the
  // factor on its way.
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

  void warm_up(TensorState& tensor, params::Table&, const optim::StepInput&);
  void freeze();
  optim::StepReport compressed_step(Context&, params::Table&, const optim::StepInput&);
  void follow_variance(const TensorState& tensor, const std::vector<float>& before);
  void move(TensorState& tensor, params::Table&, const optim::StepInput&);

  OneBitLambOptions options_;
  comm::Communicator& communicator_;
  optim::Phase phase_ = optim::Phase::kWarmup;
  int64_t counter_ = 1;  // the constructor's dummy step is done
  std::vector<TensorState> tensors_;
  std::vector<float> momentum_, variance_, fresh_variance_;
  AllReduce all_reduce_;
};

}  // namespace onebit::deepspeed
