// 1-bit Adam (Tang et al., arXiv 2102.02888) with arithmetic that follows Adam where the published
// one falls behind: docs/compression.md says why and by how much.
//
// Warm-up: Adam on averaged gradients. At its end the momentum is divided by d = sqrt(v / cv) +
// eps and v by cv, where cm, cv = 1 - products of the betas so far (1 without bias correction).
// From then on, with this rank's gradient g:
//   y = g / d                                        each rank's own d
//   a = average over ranks of sign(y + e) s          at its owner; e: what has not been sent yet
//   m = beta1 m + (1 - beta1) a                      at its owner
//   momentum = sign(m + lead (m - m before) + e') s'  from its owner to all
//   value -= lr (momentum / cm + weight_decay value)
// Workers send gradients, not momenta. So the owner's momentum smooths the noise of the signs as it
// smooths the gradient's, and no momentum is overwritten by what was sent, which would miss for ten
// updates what a sign could not say. The scales s pass a small signal nearly whole, and the lead
// makes up for the rest (compress/sub_block_scale.h): Adam becomes unstable when gradients come
// late by a step or two.
//
// ops::onebit_normalize keeps updating d: its shape within 256 elements follows this rank's own
// gradients (1 / ranks as fast in rows that are looked up, of which a rank sees few), its level
// those of all ranks, which travel in turns as one number for each block. noise_ratio.h follows the
// ratio between a rank's squared gradient and the average's.
//
// On two levels (levels.h) g is the mean over a node, and all of this is done for a rank's share of
// the parameters, whose values the node's other ranks then get. The warm-up is the same as on one.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "onebit/base/clock.h"
#include "onebit/optim/adam_rule.h"
#include "onebit/optim/exchange_options.h"
#include "onebit/optim/freeze_rule.h"
#include "onebit/optim/gradient_agreement.h"
#include "onebit/optim/levels.h"
#include "onebit/optim/normalized_moments.h"
#include "onebit/optim/optimizer_recipe.h"
#include "onebit/optim/sign_exchange.h"
#include "onebit/optim/still_entries.h"
#include "onebit/optim/variance_level.h"

namespace onebit::optim {

struct OneBitAdamOptions {
  AdamOptions adam;
  FreezeOptions freeze;
  ExchangeOptions exchange;
};

class OneBitAdam : public Optimizer {
 public:
  OneBitAdam(const OneBitAdamOptions& options, const params::Table& table,
             comm::Communicator& communicator, const RunFacts& run);

  GradientNeed gradient_need() const override;
  Phase phase() const override;
  bool observes_local_gradients() const override;
  // With one rank nothing is sent, so nothing has to leave early.
  std::optional<comm::Buckets> limited_buckets() const override;
  void begin_step(Context&, params::Table&, const StepInput&) override;
  void gradients_ready(Range) override;
  std::vector<Range> prepare_local_gradients(Context&, params::Table&) override;
  StepReport step(Context&, params::Table&, const StepInput&) override;
  void skip_step() override;
  void save(params::StateWriter&) const override;
  void load(Context&, params::Table&, const params::StateReader&) override;
  int64_t saved_bytes(Phase phase) const override;
  int64_t state_bytes() const override;
  int64_t compressed_state_bytes() const override;
  int64_t wire_bytes_sent() const override;

  // Valid only in the compressed phase.
  const NormalizedMoments& normalized() const { return std::get<NormalizedMoments>(state_); }

 protected:
  using Bucket = SignExchange::Bucket;

  // How an update of the compressed phase is made.
  struct UpdatePlan {
    bool averages = false;       // its gradients come averaged over ranks, and so does its variance
    bool exchanges = true;       // false: this rank continues with its own gradients
    int64_t updates = 1;         // whose gradients this exchange sends
    double variance_memory = 1;  // the fraction of the variance that it keeps
  };

  // What the optimizers made of this one do their own way. Of the warm-up: an update from averaged
  // gradients, moments included.
  virtual const char* state_name() const { return "onebit_adam"; }
  virtual void dense_update(Context&, params::Table&, const Moments&, const StepInput&);
  // Of the compressed phase: how the next update is made; what happens to a bucket between
  // normalizing and sending it, or instead of sending it; and how the values move by the momentum,
  // or do not because some gradient was not finite.
  virtual UpdatePlan plan() const { return {.variance_memory = rule_.next_variance_memory()}; }
  virtual void before_sending(Context&, const Bucket&) {}
  virtual void keep_local(Context&, const StepInput&, const Bucket&) {}
  virtual void apply(Context&, params::Table&, const StepInput&);
  virtual void discard(Context&, params::Table&, const StepInput&) {}

  bool alone() const { return communicator_.world_size() == 1; }
  // A part of the compute copy; empty where there is none.
  static View compute_part(const params::Table&, Range);
  // After this rank's share of the values has moved: gets those of the node's others.
  void gather_values(Context&, params::Table&) const;
  // Before a bucket's gradients are read: on two levels they become the mean over the node.
  void average_inside_node(Context&, params::Table&, const Bucket&);
  int64_t updates() const { return updates_; }
  const UpdatePlan& current_plan() const { return plan_; }
  comm::Communicator& communicator() const { return communicator_; }
  AdamRule& rule() { return rule_; }
  const AdamRule& rule() const { return rule_; }
  const StillEntries& still() const { return still_; }
  const Levels& levels() const { return levels_; }
  SignExchange& exchange() { return exchange_; }
  const SignExchange& exchange() const { return exchange_; }

 private:
  StepReport warmup_step(Context&, params::Table&, const StepInput&);
  void freeze(Context&, params::Table&);
  StepReport compressed_step(Context&, params::Table&, const StepInput&);
  void normalize(Context&, const params::Table&, const StepInput&, const Bucket&);
  void update_locally(Context&, params::Table&, const StepInput&);
  void hold_normalized(NormalizedMoments moments);
  // Returns a watch that started when the last bucket had arrived.
  Stopwatch finish_exchange(Context&, StepReport&);
  void end_update(Context&);
  void receive(Context&, const StepInput&, const Bucket&);
  void wake(const params::Table&, const StepInput&, std::vector<uint8_t> touched);
  void load_compressed(const params::StateReader&);
  int64_t moments_bytes() const;
  // Goes back to the warm-up with the mean of the ranks' state. Collective.
  void thaw();

  OneBitAdamOptions options_;
  comm::Communicator& communicator_;
  Levels levels_;
  int64_t updates_ = 0;
  AdamRule rule_;
  std::variant<Moments, NormalizedMoments> state_;  // warm-up, compressed phase
  FreezeRule freeze_rule_;
  StillEntries still_;
  VarianceLevel level_;
  GradientAgreement agreement_;
  bool begun_ = false;
  bool prepared_ = false;  // the gradients of this step are averaged inside the node already
  UpdatePlan plan_;        // of the update that has begun
  SignExchange exchange_;  // last: its thread uses the members above
};

std::shared_ptr<const OptimizerRecipe> onebit_adam_recipe(const OneBitAdamOptions& options);
std::shared_ptr<const OptimizerRecipe> read_onebit_adam(Keys& params);

}  // namespace onebit::optim
