// DeepSpeed's 1-bit Adam as it computes (its fp16 wrapper's counting, no batch lost), for
// comparisons: no bias correction, freeze_step - 1 updates of warm-up, the momentum of a tensor
// (its f32 way) or of a whole decay group (its fp16 way) compressed with one RMS scale, padding
// counted and fed back, nothing still. CPU only, not fast.
//
// Its defects that are mended: residuals survive a checkpoint, the clip coefficient is agreed, and
// a gradient that is not finite changes nothing on any rank.
#pragma once

#include <memory>
#include <vector>

#include "onebit/compress/parity_all_reduce.h"
#include "onebit/optim/freeze_rule.h"
#include "onebit/optim/make_optimizer.h"
#include "onebit/optim/moments.h"

namespace onebit::optim {

class DeepSpeedOneBitAdam : public Optimizer {
 public:
  DeepSpeedOneBitAdam(const OptimizerConfig& config, const params::Table& table,
                      comm::Communicator& communicator, const RunFacts& run);

  GradientNeed gradient_need() const override;
  Phase phase() const override { return phase_; }
  bool observes_local_gradients() const override;
  StepReport step(Context&, params::Table&, const StepInput&) override;
  void save(params::StateWriter&) const override;
  void load(Context&, params::Table&, const params::StateReader&) override;
  int64_t saved_bytes(Phase phase) const override;
  int64_t state_bytes() const override;

  View momentum() const { return moments_.momentum(); }
  View variance() const { return moments_.variance(); }

 private:
  // Compressed together: pieces of the flat buffer in order.
  struct Group {
    std::vector<params::Range> pieces;
    int64_t elements = 0;
  };
  void make_groups(const params::Table& table);
  void make_exchanges();
  StepReport compressed_step(Context&, params::Table&, const StepInput&);
  void exchange(Group& group, compress::ParityAllReduce& all_reduce);
  void mask();

  OptimizerConfig config_;
  comm::Communicator& communicator_;
  Phase phase_ = Phase::kWarmup;
  int64_t counter_ = 1;  // the constructor's dummy step is done
  Moments moments_;
  std::vector<Group> groups_;
  std::vector<params::Range> held_;
  std::vector<std::unique_ptr<compress::ParityAllReduce>> exchanges_;  // compressed phase
  std::vector<float> staged_;
};

}  // namespace onebit::optim
