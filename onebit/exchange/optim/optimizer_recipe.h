// An optimizer as a recipe describes it: its options, read and checked, and what can be reported
// about it before there are parameters to train.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/state_layout.h"

namespace onebit::comm {
class Communicator;
}

namespace onebit::optim {

struct AdamOptions;

// What an optimizer knows about its run.
struct RunFacts {
  int64_t total_steps = 0;      // updates of the whole run, for warnings. 0: not known
  int64_t schedule_warmup = 0;  // Schedule::warmup_updates(): "auto" never freezes before
  // The minimum size of the values in a bucket of the compressed exchange
  // (compress::sized_buckets).
  int64_t bucket_bytes = 4 << 20;
  // Where a resumed run continues: completed updates, and whether the compressed phase has begun.
  int64_t completed_steps = 0;
  bool compressed = false;
  // The compressed exchange is between the nodes of the communicator (topology.h).
  bool two_levels = false;
};

// Numbers of updates of a run by what the ranks exchange in them. Each update is of one kind.
struct UpdateCounts {
  int64_t dense = 0;       // averages of gradients
  int64_t compressed = 0;  // one bit per element
  int64_t both = 0;        // an average and, in the same update, one bit per element
  int64_t local = 0;       // nothing

  int64_t all() const { return dense + compressed + both + local; }
};

class OptimizerRecipe {
 public:
  virtual ~OptimizerRecipe() = default;

  // Its usual name: "1-bit Adam".
  virtual std::string_view title() const = 0;

  // The base rate of the schedules that scale one.
  virtual double learning_rate() const = 0;

  // Reserves the state for `table`, which must be allocated and outlives the optimizer, as does the
  // communicator. Collective.
  virtual std::unique_ptr<Optimizer> make(const ParameterTable&, comm::Communicator&,
                                          const RunFacts&) const = 0;

  // Every buffer of its state, for a table that may be unallocated.
  virtual StateLayout state_layout(const ParameterTable& table, const StateDivision&) const = 0;
  // Before an optimizer exists, for plans of other world sizes: Optimizer::state_bytes() of rank 0
  // on one level, and Optimizer::saved_bytes() of the phase in which it is largest, of those that a
  // run of this length reaches.
  int64_t state_bytes(const ParameterTable& table, int world_size, const RunFacts&) const;
  int64_t most_saved_bytes(const ParameterTable& table, int world_size, const RunFacts&) const;

  // Its numbers, for the row "optimizer" of the start table.
  virtual std::string describe() const = 0;
  // Further rows of that table: name and text.
  virtual std::vector<std::pair<std::string, std::string>> rows(const RunFacts&,
                                                                int /*world_size*/) const {
    return {};
  }

  // A conflict with a run of this length, as the end of a sentence about optimizer.params. Empty:
  // none.
  virtual std::string conflict_with(const RunFacts&) const { return {}; }

  // Sentences that warn the user about a run of this length that is possible but hardly intended.
  virtual std::vector<std::string> warnings(const RunFacts&) const { return {}; }

  // If the exchange is compressed after a warm-up, the earliest last update of the warm-up. Empty:
  // the optimizer never compresses.
  virtual std::optional<int64_t> last_dense_update(const RunFacts&) const { return std::nullopt; }
  bool compresses() const { return last_dense_update({}).has_value(); }
  // Whether there are updates in which the ranks exchange nothing.
  virtual bool makes_local_updates() const { return false; }

  // What several ranks exchange in the first `updates` of a run. A single rank exchanges nothing.
  virtual UpdateCounts count_updates(const RunFacts& run, int64_t updates) const {
    const int64_t dense = std::min(last_dense_update(run).value_or(updates), updates);
    return {.dense = dense, .compressed = updates - dense};
  }

  // The Adam whose updates this optimizer's are meant to equal, for the comparison by
  // run.watch_adam. Null: it is not based on Adam.
  virtual const AdamOptions* followed_adam() const { return nullptr; }
};

}  // namespace onebit::optim
