// The optimizer of the 1-bit family: a warm-up on averaged gradients, and after the freeze an
// exchange at one bit per element. onebit_adam.h has the formulas. Its members differ in two parts:
//
//                how values move (value_rule.h)    what updates exchange (local_updates.h)
//   1-bit Adam   as in Adam                        one bit
//   1-bit LAMB   by LAMB's trust ratios as well    one bit
//   0/1 Adam     as in Adam                        one bit, averages too, or nothing, by a schedule
//
// An update of the warm-up is made by the value rule. After it the freeze rule may end the warm-up.
// An update of the compressed phase consists of
//
//   plan             what it exchanges (local_updates.h)
//   fill             for every bucket, as soon as its gradients are ready: the mean over the node,
//                    then y = g / d, to which local updates add their sum
//   the exchange     sends y to the owners of its chunks, and their momentum to all, which keep it
//                    coded (compress/compressed_all_reduce.h)
//   keep_bucket      instead of these two if nothing is exchanged: y changes the momentum here
//   agreement        whether every gradient was finite, the level of the variance on all ranks, and
//                    which still entries wake
//   move_values      values -= lr momentum / cm + ..., the momentum decoded part by part
//
// `fill` and the exchange run on the exchange thread, during the backward pass if begin_step() was
// called.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "onebit/exchange/comm/overlapped_exchange.h"
#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "onebit/exchange/one_bit/freeze.h"
#include "onebit/exchange/one_bit/local_updates.h"
#include "onebit/exchange/one_bit/normalized_gradients.h"
#include "onebit/exchange/one_bit/owned_momentum.h"
#include "onebit/exchange/one_bit/still_entries.h"
#include "onebit/exchange/one_bit/value_rule.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/moments.h"
#include "onebit/exchange/optim/optimizer_recipe.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/recipe/keys.h"

namespace onebit::optim {

// The options of the exchange, common to every 1-bit optimizer.
struct ExchangeOptions {
  // exp_avg_mask: maps a tensor to the number of rows that move in the compressed phase. Later rows
  // stay still.
  std::map<std::string, int64_t> moving_rows;
};

// Reads their keys of optimizer.params. The exchange sends the gradient over the root of its
// variance, which must be an average over several updates: `beta2` must be above 0.
ExchangeOptions read_exchange_options(Keys& params, double beta2);
// The rows of the start table about the compressed phase, for an optimizer with a freeze.
std::vector<std::pair<std::string, std::string>> compressed_phase_rows(const FreezeOptions& options,
                                                                       double beta2,
                                                                       const RunFacts& run,
                                                                       int world_size);

struct CompressedOptions {
  const char* name = "";  // in checkpoints
  AdamOptions adam;
  FreezeOptions freeze;
  ExchangeOptions exchange;
  std::optional<ZeroOneOptions> schedule = {};  // absent: every update exchanges one bit
  ValueRuleMaker values = make_adam_values;
  // The state of the value rule, in its order.
  std::function<StateLayout(const ParameterTable&, int sources)> values_layout =
      [](const ParameterTable&, int) { return StateLayout(); };
};

class CompressedOptimizer final : public Optimizer {
 public:
  CompressedOptimizer(const CompressedOptions& options, const ParameterTable& table,
                      comm::Communicator& communicator, const RunFacts& run);

  GradientNeed gradient_need() const override;
  Phase phase() const override;
  std::string describe_warmup_end() const override { return freeze_rule_.describe_end(); }
  bool observes_local_gradients() const override;
  // With one rank nothing is sent, so no bucket has to leave early.
  std::optional<comm::Buckets> limited_buckets() const override;
  void begin_step(Context&, ParameterTable&, const StepInput&) override;
  void gradients_ready(Range) override;
  std::vector<Range> prepare_local_gradients(Context&, ParameterTable&) override;
  StepReport step(Context&, ParameterTable&, const StepInput&) override;
  void skip_step() override;
  void show_common_values(Context&, ParameterTable&) override;
  void restore_own_values(Context&, ParameterTable&) override;
  void save(StateWriter&) const override;
  void load(Context&, ParameterTable&, const StateReader&) override;
  int64_t saved_bytes(Phase phase) const override { return sizes_.saved_bytes(phase); }
  int64_t state_bytes() const override { return sizes_.memory_bytes(phase()); }
  int64_t compressed_state_bytes() const override {
    return sizes_.memory_bytes(Phase::kCompressed);
  }
  int64_t wire_bytes_sent() const override;

  // Every buffer of its state, in the order in which save() writes them.
  static StateLayout layout(const CompressedOptions& options, const ParameterTable& table,
                            const StateDivision& division);

  View variance() const { return std::get<OwnVariance>(state_).view(); }  // compressed phase
  OwnedMomentum& momentum() { return momentum_; }
  const ValueRule& values() const { return *values_; }
  int64_t local_updates() const { return local_ ? local_->count() : 0; }  // since the exchange

 private:
  // Elements [range.begin, range.end) of this rank's share, which are `in_buffer` of the flat
  // buffer. On one level the two are the same.
  struct Bucket {
    int64_t index = 0;
    Range range, in_buffer;
    View normalized;  // f32 [elements of the range]  memory that the next bucket reuses
    View extra;       // f32 [blocks of the range]  likewise
  };
  Bucket bucket_at(int64_t index) const;
  static StateLayout bucket_layout();
  bool alone() const { return communicator_.world_size() == 1; }

  StepReport warmup_step(Context&, ParameterTable&, const StepInput&);
  void freeze(Context&, ParameterTable&);
  StepReport compressed_step(Context&, ParameterTable&, const StepInput&);
  UpdatePlan next_plan() const;
  double momentum_limit(const StepInput&) const;
  compress::CompressedBucket fill(Context&, const comm::BucketInFlight&);
  // Computes a bucket's normalized gradients and extras. On two levels its gradients become the
  // mean over the node before.
  void normalize(Context&, const Bucket&);
  // Adds a bucket's gradients, normalized, to kept_momentum() and to the sum of local updates.
  void keep_bucket(Context&, const Bucket&);
  // Completes the exchange, or makes an update without one. Returns a stopwatch started when the
  // last bucket had arrived.
  Stopwatch finish_buckets(Context&, StepReport&);
  // What the ranks have agreed on: whether every gradient was finite, and which entries woke.
  struct Agreed {
    bool finite = true;
    std::vector<StillEntries::Woken> woken;
  };
  Agreed agree(Context&, const ParameterTable&, const StepInput&, StepReport&);
  void end_variance_update(Context&, bool finite);
  std::vector<StillEntries::Woken> wake(const ParameterTable&, const StepInput&,
                                        std::vector<uint8_t> touched);
  void move_values(Context&, ParameterTable&, const StepInput&, const Agreed&, StepReport&);
  // The momentum that is kept as f32 [elements of the share]: always with one rank, and between
  // local updates. Otherwise empty.
  View kept_momentum() const;
  // Calls `work` for all of this rank's share, with the momentum of this update.
  void visit_momentum(Context&, const OwnedMomentum::Visit& work);
  // After this rank's share of the values has moved, receives the shares of the node's other ranks.
  void gather_values(Context&, ParameterTable&) const;

  // Begins the compressed phase in the memory of `moments`, normalized. `scratch`: f32 [elements].
  void hold_normalized(Moments&& moments, View scratch);
  // The inverse: moments in the memory of the compressed phase.
  Moments release_normalized();
  void load_moments(const ParameterTable&, const StateReader&, bool compressed);
  void load_compressed(const ParameterTable&, const StateReader&);
  // Returns to the warm-up with the mean of the ranks' state. Collective.
  void return_to_warmup();

  CompressedOptions options_;
  comm::Communicator& communicator_;
  Topology topology_;
  StateSizes sizes_;
  int64_t updates_ = 0;
  AdamRule rule_;
  std::variant<Moments, OwnVariance> state_;  // warm-up, compressed phase
  FreezeRule freeze_rule_;
  StillEntries still_;
  VarianceSums variance_sums_;
  GradientAgreement agreement_;
  OwnedMomentum momentum_;
  std::unique_ptr<LocalUpdates> local_;  // only with a schedule
  std::unique_ptr<ValueRule> values_;
  bool begun_ = false;
  bool prepared_ = false;  // the gradients of this step are already averaged over the node
  UpdatePlan plan_;        // of the current update
  // What buckets read of the current update. The input's limits and groups are these.
  ParameterTable* table_ = nullptr;
  StepInput input_;
  std::vector<double> norm_limits_;
  std::vector<UpdateGroup> groups_;
  // Of one bucket (bucket_layout()). Later the first has parts of the received momentum.
  enum Buffer : size_t { kNormalized, kExtra };
  StateTensors buffers_;
  // Null with one rank. Last: its thread uses the members above.
  std::unique_ptr<comm::OverlappedExchange> exchange_;
};

}  // namespace onebit::optim
