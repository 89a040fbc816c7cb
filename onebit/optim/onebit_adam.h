// 1-bit Adam (Tang et al., arXiv 2102.02888) with another arithmetic than theirs, that follows Adam
// where theirs falls behind: docs/compression.md says why and by how much.
//
// Warm-up: Adam on averaged gradients. At its end the momentum is divided by d = sqrt(v / cv) +
// eps and v by cv, where cm, cv = 1 - products of the betas so far (1 without bias correction).
// From then on, with this rank's gradient g:
//   y = g / d                                        each rank's own d
//   a = average over ranks of sign(y + e) s          at its owner; e: what has not been sent yet
//   m = beta1 m + (1 - beta1) a                      at its owner
//   momentum = sign(m + lead (m - m before) + e') s'  from its owner to all
//   value -= lr (momentum / cm + weight_decay value)
// Workers send gradients and not momenta, so that the owner's momentum smooths the noise of the
// signs as it smooths the gradient's, and so that nobody's momentum is made of what was sent: what
// a sign could not say would be missing from ten updates. The scales s pass a small signal nearly
// whole, and the lead makes up for the rest (compress/sub_block_scale.h): gradients that come late
// by a step or two are what Adam cannot bear.
//
// d goes on through ops::onebit_normalize: its shape within 256 elements from this rank's own
// gradients (rows that are looked up move it by 1 / ranks as much: a rank sees few of them), its
// level from those of all ranks, which travel as one number a block in turns. The ratio between a
// rank's squared gradient and the average's is followed as noise_ratio.h says.
#pragma once

#include <memory>
#include <vector>

#include "onebit/optim/freeze_rule.h"
#include "onebit/optim/gradient_signs.h"
#include "onebit/optim/make_optimizer.h"
#include "onebit/optim/moments.h"
#include "onebit/optim/noise_ratio.h"
#include "onebit/optim/still_entries.h"

namespace onebit::optim {

class OneBitAdam : public Optimizer {
 public:
  OneBitAdam(const OptimizerConfig& config, const params::Table& table,
             comm::Communicator& communicator, const RunFacts& run);

  GradientNeed gradient_need() const override;
  Phase phase() const override { return phase_; }
  bool observes_local_gradients() const override;
  // One rank sends nothing that would have to leave early.
  std::optional<comm::Buckets> limited_buckets() const override;
  void begin_step(Context&, params::Table&, const StepInput&) override;
  void gradients_ready(params::Range) override;
  StepReport step(Context&, params::Table&, const StepInput&) override;
  void skip_step() override;
  void save(params::StateWriter&) const override;
  void load(Context&, params::Table&, const params::StateReader&) override;
  int64_t saved_bytes(Phase phase) const override;
  int64_t state_bytes() const override;
  int64_t wire_bytes_sent() const override;

  // For tests and reports. In the compressed phase: the momentum of y as it arrived, the same on
  // every rank, and this rank's bias-corrected variance (0: still).
  View momentum() const { return moments_.momentum(); }
  View variance() const { return moments_.variance(); }
  const NoiseRatio& noise() const { return noise_; }

 private:
  // What the ranks agree on after a compressed exchange.
  struct Agreement {
    bool finite = true, touched = false;
    // Means over ranks, before and after the limits of buckets, and of each bucket with limits.
    double local_gradient_square = 0, limited_square = 0;
    std::vector<double> bucket_squares;
  };

  bool alone() const { return communicator_.world_size() == 1; }
  StepReport warmup_step(Context&, params::Table&, const StepInput&);
  StepReport compressed_step(Context&, params::Table&, const StepInput&);
  void freeze(Context&, params::Table&);
  void start_compressing(const params::Table&);
  void show_ratios();
  void normalize(Context&, const params::Table&, const StepInput&, const GradientSigns::Bucket&);
  // What the gradient of a bucket is multiplied by; 0 where it is not finite.
  double scale_of(Context&, const params::Table&, const StepInput&, const GradientSigns::Bucket&);
  void receive(Context&, const StepInput&, const GradientSigns::Bucket&);
  Agreement agree(const params::Table&, const StepInput&, std::vector<uint8_t>& touched);
  void wake(const params::Table&, const StepInput&, std::vector<uint8_t> touched);
  void end_cycle(Context&);
  void apply(Context&, params::Table&, const StepInput&);
  // Memory of Adam for one update of the compressed phase: beta2 with bias correction.
  double variance_memory() const;
  // Updates whose energy the number that travels now is the sum of.
  int64_t updates_in_turn() const;
  void load_compressed(const params::StateReader&);
  // Back to the warm-up, with what the ranks know together. Collective.
  void thaw();

  OptimizerConfig config_;
  comm::Communicator& communicator_;
  Phase phase_ = Phase::kWarmup;
  int64_t updates_ = 0;
  Moments moments_;
  FreezeRule freeze_rule_;
  StillEntries still_;
  NoiseRatio noise_;
  // Exchanges since the freeze, or since a resume on other ranks: which number travels.
  int64_t exchanges_ = 0;
  // Of every sub-block: the share of the variance's shape that is this rank's own; energy.
  Tensor own_weight_, energy_;
  // Of every block: see ops::OnebitNormalize. `mean_sketch_` is the average over ranks.
  Tensor ratio_, sketch_, mean_sketch_, block_energy_, block_variance_, square_, flags_;
  std::vector<double> host_square_;
  std::vector<uint8_t> host_flags_;
  // What gradients were multiplied by in this step, of every block; with limits, of every bucket
  // the squared norm before and after. Written by the thread of the exchange.
  std::vector<double> block_scale_, bucket_square_, limited_square_;
  bool begun_ = false;
  std::unique_ptr<GradientSigns> exchange_;  // compressed phase; last: its jobs use the above
};

}  // namespace onebit::optim
