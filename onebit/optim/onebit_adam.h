// 1-bit Adam (Tang et al., arXiv 2102.02888), changed as the design says: preconditioned
// coordinates, a live level, still entries, exact counting.
//
// Warm-up: Adam on averaged gradients. At its end, with bias-corrected v:
//   d = sqrt(v / cv) + eps,  x = m / d,    cm, cv = 1 - products of the betas so far (1 without
// bias correction). From then on, with this rank's gradient g:
//   x = beta1 x + (1 - beta1) g / d;  x = average over ranks at one bit an element
//   value -= lr (x / cm * brake + weight_decay value),  cm going on as in the warm-up
// Since x / cm = (m / cm) / d, a step without compression is Adam's with the variance held: the
// switch has no seam. d is not needed after the exchange, so every rank may have its own: with a
// "local" variance it goes on as Adam's, from this rank's gradients, with the next cv:
//   d^2 = d^2 + (1 - beta2) / cv (g^2 / ratio - d^2)             ratio: noise_share.h
// With "live_level" and "frozen" d is held; `brake` is 1 / sqrt(max(level, 0.1)) of the block
// (live_level.h), else 1. With coordinates "momentum", m travels and is divided by d afterwards.
#pragma once

#include <memory>
#include <vector>

#include "onebit/optim/freeze_rule.h"
#include "onebit/optim/live_level.h"
#include "onebit/optim/make_optimizer.h"
#include "onebit/optim/moments.h"
#include "onebit/optim/momentum_exchange.h"
#include "onebit/optim/noise_share.h"
#include "onebit/optim/still_entries.h"

namespace onebit::optim {

class OneBitAdam : public Optimizer {
 public:
  OneBitAdam(const OptimizerConfig& config, const params::Table& table,
             comm::Communicator& communicator, const RunFacts& run);

  GradientNeed gradient_need() const override;
  Phase phase() const override { return phase_; }
  bool observes_local_gradients() const override;
  void observe_local_gradients(Context&, const params::Table&, params::Range) override;
  void begin_step(Context&, params::Table&, const StepInput&) override;
  void gradients_ready(params::Range) override;
  StepReport step(Context&, params::Table&, const StepInput&) override;
  void skip_step() override;
  void save(params::StateWriter&) const override;
  void load(Context&, params::Table&, const params::StateReader&) override;
  int64_t state_bytes() const override;
  int64_t wire_bytes_sent() const override;

  // For tests and reports. In the compressed phase: what travels, and 1 / d (0: still).
  View momentum() const { return moments_.momentum(); }
  View inverse() const { return moments_.variance(); }
  const LiveLevel& level() const { return level_; }

 private:
  // What the ranks agree on after a compressed exchange.
  struct Agreement {
    bool finite = true, touched = false;
    double local_gradient_square = 0;  // mean over ranks
  };

  bool preconditioned() const { return config_.coordinates == Coordinates::kPreconditioned; }
  bool has_level() const { return config_.variance == Variance::kLiveLevel; }
  bool is_local() const { return config_.variance == Variance::kLocal; }
  StepReport warmup_step(Context&, params::Table&, const StepInput&);
  StepReport compressed_step(Context&, params::Table&, const StepInput&);
  // Into energy_, of the gradients that the table holds now.
  void measure_energy(Context&, const params::Table&, params::Range);
  void observe_warmup(Context&, const params::Table&, const StepInput&);
  void freeze(Context&, params::Table&);
  void make_exchange(const params::Table&);
  void prepare(Context&, const params::Table&, const StepInput&, params::Range);
  Agreement agree(const params::Table&, std::vector<uint8_t>& touched);
  void wake(const params::Table&, const StepInput&, std::vector<uint8_t> touched);
  void apply(Context&, params::Table&, const StepInput&);

  OptimizerConfig config_;
  RunFacts run_;
  comm::Communicator& communicator_;
  Phase phase_ = Phase::kWarmup;
  int64_t updates_ = 0;
  Moments moments_;  // compressed phase: x and 1 / d
  FreezeRule freeze_rule_;
  LiveLevel level_;
  NoiseShare noise_;
  StillEntries still_;
  bool observed_ = false;
  // Of every block: mean of (g / d)^2 (empty where the variance is frozen), sum of g^2, flags, what
  // multiplies x; and their host copies.
  Tensor energy_, square_, flags_, factor_;
  Tensor ratio_;  // f32 [blocks]  local variance: noise_share.h
  std::vector<float> host_energy_, host_factor_;
  std::vector<double> host_square_;
  std::vector<uint8_t> host_flags_;
  bool begun_ = false;
  std::unique_ptr<MomentumExchange> exchange_;  // compressed phase; last: its jobs use the above
};

}  // namespace onebit::optim
