// The updates of 0/1 Adam by their schedule (zero_one_adam.h): what each exchanges, and between
// exchanges the sum for the next one and the values that the ranks have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/parameter_table.h"
#include "onebit/math/tensor/view.h"

namespace onebit::optim {

// Determines which updates of 0/1 Adam exchange what (Lu et al., arXiv 2202.06009, with the
// intervals of DeepSpeed). Updates are numbered from 1.
//
// The first `variance_scaler` updates average gradients densely. Then, until `variance_freeze`,
// updates whose number is a multiple of the variance interval do so as well. That interval starts
// at 1 and doubles after every `variance_scaler` of them. The other updates exchange one bit per
// element. After `variance_freeze` an update exchanges one bit if its number is a multiple of the
// local interval, else nothing. The local interval starts at 1 and doubles after every
// `local_scaler` updates, up to `local_limit`. The run's last update always exchanges: its model
// has the values of the last exchange.
struct ZeroOneOptions {
  int64_t variance_freeze = 100000, variance_scaler = 16;
  int64_t local_scaler = 32678, local_limit = 16;
  int64_t last_update = 0;  // of the run. 0: not known
};

class ZeroOneSchedule {
 public:
  enum class Kind {
    kDense,        // gradients are averaged, as in the warm-up of 1-bit Adam
    kRefresh,      // gradients are averaged, and the compressed exchange is made as well
    kOneBit,       // the compressed exchange alone
    kSynchronize,  // the compressed exchange of the sum over the updates since the last one
    kLocal         // nothing is exchanged
  };

  // As after `updates` updates by these options, whatever the options of the run were then.
  explicit ZeroOneSchedule(const ZeroOneOptions& options, int64_t updates = 0);

  // The kind of the update after those that advance() has counted.
  Kind next() const;
  void advance();
  const ZeroOneOptions& options() const { return options_; }
  int64_t local_interval() const { return local_interval_; }

 private:
  ZeroOneOptions options_;
  int64_t updates_ = 0;
  int64_t variance_interval_ = 1, dense_in_interval_ = 0;
  int64_t local_interval_ = 1, updates_in_interval_ = 0;
};

// Numbers of the first `updates` by what they exchange.
struct ZeroOneCounts {
  int64_t dense = 0;    // averages of gradients
  int64_t one_bit = 0;  // compressed exchanges, with or without averages
  int64_t nothing = 0;  // neither
};
ZeroOneCounts count_exchanges(const ZeroOneOptions& options, int64_t updates);

// The local interval at the last of `updates`, which is the longest.
int64_t longest_interval(const ZeroOneOptions& options, int64_t updates);

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
  // Called after every update, also in the warm-up.
  void count_update() { schedule_.advance(); }

  // With several ranks, f32 [elements of the share]: the momentum received last, and after local
  // updates this rank's own. Empty with one rank.
  View momentum() const { return state_[kMomentum]; }
  // Begins the compressed phase: takes the share of `momentum`, f32 [elements].
  void freeze(ConstView momentum);

  // Adds a bucket of normalized gradients that is not sent to the sum.
  void keep(Context&, Range range, ConstView normalized);
  // Adds the sum to a bucket that is sent, and sets the sum to 0.
  void give(Context&, Range range, View normalized);

  // Called before an update without an exchange moves the values. One that is not applied, with a
  // gradient that is not finite, counts as well: it has changed this rank's momentum and sum.
  void leave_common(const ParameterTable&, const Rates&);
  // Called before an update with an exchange moves them: restores the values of the last exchange.
  // Returns the sums of the learning rates since then, this update's included, by which the
  // received momentum moves them. They use the weight decays of this update.
  Rates return_to_common(const ParameterTable&, const Rates&);
  // Updates since the last exchange.
  int64_t count() const { return count_; }

  // Puts the common values into the table and keeps this rank's own. The second call is the
  // inverse.
  void show_common(Context&, const ParameterTable&);
  void restore_own(Context&, const ParameterTable&);
  bool shows_common() const { return shows_common_; }

  // `owed_updates`: the number of updates in the last exchange, to which the server residual is
  // scaled (OwnedMomentum::scale_owner_residuals()).
  void save(StateWriter&, bool compressed, int64_t owed_updates) const;
  static int64_t saved_owed_updates(const StateReader&);
  // For another number of sources, all continue from the mean of their values. The schedule is
  // where its options put it after `updates`. Collective.
  void load(Context&, const ParameterTable&, const StateReader&, bool compressed, int64_t updates);
  // With one rank, which has no exchange to come: adds the means of the sums that were not sent to
  // `momentum`, f32 [elements], as the exchange would.
  void load_sums(const StateReader&, double beta1, View momentum) const;

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
