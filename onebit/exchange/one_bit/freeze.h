// Determines when the warm-up of a 1-bit optimizer ends.
//
// A number: after that many updates. "auto": when the warm-up of the learning rate has ended and
// the variance, which is still updated after the freeze, has settled enough: its L1 norm
// (bias-corrected) has neither halved nor doubled within a tenth of Adam's memory, 0.1 / (1 -
// beta2) updates. In either case the last kObservedUpdates updates of the warm-up observe local
// gradients, so "auto" freezes that long after its decision. There is no freeze at the last update
// of a run: nothing would be compressed.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/optimizer_recipe.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/recipe/keys.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::optim {

struct FreezeOptions {
  // Longer than any run, and far below where sums of updates overflow.
  static constexpr int64_t kMaxWindow = 1'000'000'000;

  std::optional<int64_t> step = 100000;  // updates of warm-up. Empty: "auto"
  int64_t window = 0;                    // of "auto", in updates. 0: a tenth of Adam's memory
};

// Reads the keys freeze_step and freeze_window.
FreezeOptions read_freeze_options(Keys& params);
// The earliest possible last update of the warm-up.
int64_t last_warmup_update(const FreezeOptions& options, double beta2, const RunFacts& run);
// For the start table: "after update 20 of 100" or, if it has passed, "by update 30 of 100".
std::string describe(const FreezeOptions& options, double beta2, const RunFacts& run);

// Unusual properties of this freeze in a run of this length (optimizer_recipe.h).
std::vector<std::string> freeze_warnings(const FreezeOptions& options, double beta2,
                                         const RunFacts& run);

class FreezeRule {
 public:
  static constexpr int64_t kObservedUpdates = 50;
  static constexpr double kSettled = 0.5;

  FreezeRule(const FreezeOptions& options, double beta2, const RunFacts& run);

  // Whether update number `update` is one of the last before the freeze.
  bool observes(int64_t update) const;
  // Whether warm-up update number `update`, just made, was the last. `variance` is multiplied by
  // `factor` to correct its bias. Collective, with the same answer on every rank.
  bool freezes_after(Context&, comm::Communicator&, int64_t update, ConstView variance,
                     double factor);

  // Whether the recipe gives a number and `updates` are fewer.
  bool is_before(int64_t updates) const { return !automatic_ && last_ && updates < *last_; }

  // What the warm-up waits for, as part of a sentence.
  std::string describe_end() const;

  void save(StateWriter&) const;
  void load(const StateReader&);

 private:
  struct Sample {
    int64_t update;
    double norm;
  };

  // `change`: of the variance's norm over the last `updates` updates.
  void report_decision(int64_t update, double change, int64_t updates) const;

  bool automatic_;
  std::optional<int64_t> last_;  // update of the warm-up. Empty until "auto" has decided
  int64_t total_steps_;          // of the run. 0: not known
  int64_t schedule_warmup_, window_ = 0, stride_ = 1;
  std::deque<Sample> samples_;  // one every stride_ updates, over one window
};

}  // namespace onebit::optim
