// The interface between engine and optimizer. An optimizer reports which gradients it needs and
// makes one update from them. It never controls the engine (docs/architecture.md, "Optimizer").
// Exchanges that belong to the optimizer (the compressed phase) happen inside it, on the
// communicator with which it was constructed.
//
// One step, as the engine makes it:
//
//   if (optimizer.gradient_need() == GradientNeed::kAveragedOverRanks) {
//     for every bucket, as soon as backward has finished it:
//       average the bucket over ranks;
//     decide on norm, clipping and finiteness;
//     optimizer.step(...), or optimizer.skip_step() when the gradient is not finite;
//   } else if (the scale of the gradient is known beforehand: no loss scaling, and no clipping or
//              clipping by limits of the buckets, each computed from its own contents) {
//     optimizer.begin_step(...);
//     for every range, as soon as backward has finished it: optimizer.gradients_ready(range);
//     optimizer.step(...);
//   } else {
//     backward; decide on norm, clipping and finiteness of the local gradients;
//     optimizer.step(...), or optimizer.skip_step();
//   }
//
// Every rank makes the same calls with the same StepInput.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/math/device/context.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::optim {

class StateReader;  // state_layout.h
class StateWriter;

// Which gradients the next step() reads from the table.
enum class GradientNeed {
  kAveragedOverRanks,  // the mean over ranks, equal on every rank
  kLocalOnly           // this rank's own
};

enum class Phase {
  kDense,      // an optimizer that never compresses
  kWarmup,     // an optimizer that will compress
  kCompressed  // an optimizer that compresses now
};
constexpr std::string_view name_of(Phase phase) {
  constexpr std::string_view kNames[] = {"dense", "warmup", "compressed"};
  return kNames[static_cast<size_t>(phase)];
}

// What an update does with the parameters of a group (ParameterDeclaration::group).
struct UpdateGroup {
  double rate = 1;          // the learning rate is multiplied by it
  double weight_decay = 0;  // of its parameters that decay
};

// The settings of group `group`, or those without groups.
constexpr UpdateGroup settings_of(int group, std::span<const UpdateGroup> groups,
                                  double weight_decay) {
  return groups.empty() ? UpdateGroup{.rate = 1, .weight_decay = weight_decay}
                        : groups[static_cast<size_t>(group)];
}

struct StepInput {
  int64_t step = 0;  // number of this update, from 1. Skipped steps do not count
  double learning_rate = 0;
  // Every gradient is multiplied by this when it is read: 1 / loss scale * clip coefficient.
  double gradient_scale = 1;
  // The largest norm of this rank's scaled gradient in each of Optimizer::limited_buckets(). A
  // larger gradient is scaled down to it. Empty: no limits. The call copies them.
  std::span<const double> norm_limits;
  // Set by schedules that cycle momentum. Otherwise the configured value applies.
  std::optional<double> beta1;
  // By number of the group. Empty: the rate of all is 1 and the configured weight decay applies.
  // In all steps of a run or in none. The call copies them.
  std::span<const UpdateGroup> groups = {};
};

struct StepReport {
  Phase phase = Phase::kDense;
  bool applied = true;     // false: the gradient of some rank was not finite. No value was changed
  bool froze_now = false;  // this step was the last of the warm-up
  // Where a step ends local updates: the sum of their learning rates and its own. Else 0.
  double gathered_rate = 0;
  // Norms over the whole flat buffer, in the units that are sent, only in the compressed phase:
  // what this rank (on two levels, its node) had to send, and what is left for later steps.
  double sent_norm = 0;
  double residual_norm = 0;
  // Mean over ranks of the squared norm of the local gradients, scaled, before limits apply. Only
  // in the compressed phase.
  double local_gradient_square = 0;
  // With limits: the same for each bucket, and the norm of the whole after limiting.
  std::vector<double> bucket_squares;
  double clip_coefficient = 1;
  // Norm of the averaged gradient over the root mean square of the ranks' norms, as tracked in the
  // compressed phase. 0: not known.
  double norm_ratio = 0;
  int64_t still_elements = 0;  // not coded, not moved (docs/architecture.md)
  int64_t woken_elements = 0;  // the number of them that this step woke
  double compress_seconds = 0;
  double wait_seconds = 0;
  double update_seconds = 0;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Valid for the next step. It may change between steps, identically on every rank.
  virtual GradientNeed gradient_need() const = 0;
  virtual Phase phase() const = 0;

  // In the warm-up: what it waits for and what makes it shorter, as the end of a sentence.
  virtual std::string describe_warmup_end() const { return {}; }

  // Whether the engine should also measure the norm of this rank's gradients, not only the norm of
  // their average: in the last steps before a freeze, after which only the former is available.
  virtual bool observes_local_gradients() const { return false; }

  // The buckets of its exchange of local gradients if it can limit the norm of each when it is
  // sent. Otherwise empty.
  virtual std::optional<comm::Buckets> limited_buckets() const { return std::nullopt; }

  // Overlap with the backward pass, only if gradient_need() is kLocalOnly. begin_step() opens a
  // step. Each gradients_ready() reports that this rank's gradients in `range` are final (any
  // order, every parameter element once, the same order on every rank). step() closes it with the
  // same input, in which the learning rate may be another: only step() reads it. A non-finite
  // gradient is taken as zero and reported: applied is then false.
  virtual void begin_step(Context&, ParameterTable&, const StepInput&) {}
  virtual void gradients_ready(Range) {}

  // Called before the norm of local gradients is computed for a step that does not begin early:
  // brings them into the form in which they are sent. Returns the ranges of the table's gradients
  // that are then this rank's. On two levels the ranks of a node divide the mean of their
  // gradients. The next call is step() or skip_step(). Collective.
  virtual std::vector<Range> prepare_local_gradients(Context&, ParameterTable& table) {
    return {{0, table.size_elements()}};
  }

  // One update of table.values(), and of table.compute_values() in the same pass. Gradients are
  // read. On two levels the gradients of this rank's share become the node's, and the last update
  // of the warm-up leaves zeros, as does load(). Without begin_step() it does everything itself.
  virtual StepReport step(Context&, ParameterTable&, const StepInput&) = 0;
  // The engine found, with the agreement of all ranks, that this step's gradient is not finite:
  // no value or state changes. Not between begin_step() and step().
  virtual void skip_step() {}

  // If ranks make their own updates between exchanges, their values differ meanwhile. The first
  // function puts the common values, those after the last exchange, into the table and keeps this
  // rank's own. The second restores them. save() is called in between, as is everything that reads
  // the values for all ranks: evaluation, comparison, a model's files.
  virtual void show_common_values(Context&, ParameterTable&) {}
  virtual void restore_own_values(Context&, ParameterTable&) {}

  // save() writes everything that an exact resume needs, including this rank's residuals. load()
  // expects an optimizer of the same configuration. At another world size residuals are
  // re-distributed, and the ranks read them together: collective.
  virtual void save(StateWriter&) const = 0;
  virtual void load(Context&, ParameterTable&, const StateReader&) = 0;

  // Bytes that save() of all ranks together writes into a checkpoint made in `phase`.
  virtual int64_t saved_bytes(Phase phase) const = 0;

  // Current memory of moments, residuals and buffers.
  virtual int64_t state_bytes() const = 0;
  // The same in the compressed phase: less if the ranks of a node then divide the moments.
  virtual int64_t compressed_state_bytes() const { return state_bytes(); }
  // Bytes that this rank has sent so far through communicators that the optimizer created itself
  // (duplicates of the one it was given, which counts separately).
  virtual int64_t wire_bytes_sent() const { return 0; }
};

// Recomputes the whole copy of a table's values in the compute type, if there is one, after values
// were set otherwise than by an update.
inline void refresh_compute_copy(Context& context, const ParameterTable& table) {
  if (table.compute_type() == DType::kF32) return;
  ops::cast(context, {.from = table.values(), .to = table.compute_values()});
}

}  // namespace onebit::optim
