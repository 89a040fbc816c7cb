// The updates of 0/1 Adam by their schedule (zero_one_adam.h): what each exchanges, and between
// exchanges the sum for the next one and the values that the ranks have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/exchange/optim/adam_rule.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/sign_exchange.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/exchange/optim/zero_one_schedule.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/parameter_table.h"
#include "onebit/math/tensor/state.h"

namespace onebit::optim {

// What an update of the compressed phase exchanges.
struct UpdatePlan {
  bool averages = false;       // its gradients are averaged over ranks, and so is its variance
  bool exchanges = true;       // false: this rank continues with its own gradients
  int64_t updates = 1;         // number of updates whose gradients this exchange sends
  double variance_memory = 1;  // the fraction of the variance that it keeps
};

// The learning rate of an update and its groups (StepInput).
struct Rates {
  double learning_rate = 0;
  std::vector<UpdateGroup> groups;  // empty: all groups have the learning rate
};

class LocalUpdates {
 public:
  // Reserves its memory. `topology` outlives this object.
  LocalUpdates(const ZeroOneOptions& options, const ParameterTable& table,
               const Topology& topology);

  // The plan of the next update of the compressed phase. A single rank exchanges nothing and has
  // no reason to delay its variance.
  UpdatePlan plan(const AdamRule& adam) const;
  // Called after every update, including those of the warm-up.
  void count_update() { schedule_.advance(); }

  // With several ranks, f32 [elements of the share]: the momentum received last, and after local
  // updates this rank's own. Empty with one rank.
  View momentum() const { return state_[kMomentum]; }
  // Begins the compressed phase: takes the share of `momentum`, f32 [elements].
  void freeze(ConstView momentum);

  // Adds a bucket of normalized gradients that is not sent to the sum.
  void keep(Context&, const SignExchange::Bucket&);
  // Adds the sum to a bucket that is sent, and sets the sum to 0.
  void give(Context&, const SignExchange::Bucket&);

  // Called before an update without an exchange moves the values. One that is not applied, with a
  // gradient that is not finite, counts as well: it has changed this rank's momentum and sum.
  void leave_common(const ParameterTable&, const Rates&);
  // Called before an update with an exchange moves them: restores the values of the last exchange.
  // Returns the sums of the learning rates since then, this update's included, by which the
  // received momentum moves them. Their weight decays are those of this update.
  Rates return_to_common(const ParameterTable&, const Rates&);
  // Updates since the last exchange.
  int64_t count() const { return count_; }

  // Puts the common values into the table and keeps this rank's own; and the inverse.
  void show_common(Context&, const ParameterTable&);
  void restore_own(Context&, const ParameterTable&);
  bool shows_common() const { return shows_common_; }

  // `owed_updates`: the number of updates in the last exchange, to which the server residual is
  // scaled (SignExchange::scale_owner_residuals()).
  void save(StateWriter&, bool compressed, int64_t owed_updates) const;
  static int64_t saved_owed_updates(const StateReader&);
  // For another number of sources, all continue from the mean of their values. The schedule is that
  // of its options after `updates`. Collective.
  void load(Context&, const ParameterTable&, const StateReader&, bool compressed, int64_t updates);

  static StateLayout layout(int sources, int64_t share_elements);

 private:
  void add_rates(const Rates&);
  void swap_values(Context&, const ParameterTable&);
  void load_rates(const Json& rate_sum);
  void load_arrived(const StateReader&, const char* name) const;
  void load_values(const ParameterTable&, const StateReader&) const;
  bool alone() const { return topology_.sources() == 1; }

  const Topology& topology_;
  ZeroOneSchedule schedule_;
  int64_t count_ = 0;
  std::vector<double> rate_sums_;  // of their learning rates, by group
  // Only with several ranks.
  enum Buffer : size_t {
    kMomentum,  // momentum()
    // The values after the last exchange, valid while there are local updates. While the common
    // values are shown, this rank's own.
    kCommon,
    kSum,     // of the local updates
    kSwapped  // a part of the values
  };
  StateTensors state_;
  bool shows_common_ = false;
};

}  // namespace onebit::optim
