// The training engine, modelled on DeepSpeed's: it trains any model with a ParameterTable, a
// forward and a backward pass. `train_step` of training/train_step.cc is the step with data and a
// loss. A loop is
//
//   Engine engine(context, table, config, communicator);
//   while (engine.completed_steps() < steps) {
//     engine.backward([&](const BackwardInput& input) { ...forward, backward... });
//     if (auto outcome = engine.step()) ...;     // empty inside an accumulation
//   }
//
// The gradient of a step is the mean over ranks of the sums over micro-steps: a model whose loss is
// a mean over the global batch weights each item by world_size / items.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/exchange/engine/gradient_exchange.h"
#include "onebit/exchange/engine/levels_choice.h"
#include "onebit/exchange/engine/packed_matrices.h"
#include "onebit/exchange/engine/update_watch.h"
#include "onebit/exchange/optim/gradient_clipper.h"
#include "onebit/exchange/optim/loss_scaler.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/schedule.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::engine {

struct BackwardInput {
  double loss_scale = 1;  // every gradient must be multiplied by it
  // The model calls this with each range of the flat gradient buffer, of whole parameters, once it
  // is complete, from the end to the start, until all is covered. Empty if nothing waits for it.
  std::function<void(Range)> gradients_ready;
};

// The optimizer's report of a step with what the engine adds. The clip coefficient is the engine's
// if the engine has clipped. The seconds of compressing and waiting include the dense exchange.
struct StepOutcome : optim::StepReport {
  int64_t step = 0;           // updates completed, this one included if it was applied
  int64_t skipped_steps = 0;  // since the start of the run
  double learning_rate = 0;
  double gradient_norm = 0;  // of the average over ranks (an estimate in the compressed phase)
  double loss_scale = 1;
  int64_t wire_bytes = 0;              // sent by this rank in this step, counted at the transport
  int64_t wire_bytes_inside_node = 0;  // the part of them sent to ranks of its own node
  int64_t wire_bytes_dense16 = 0;      // what a 16-bit ring all-reduce of the gradients would send
  int64_t watch_bytes = 0;             // sent for run.watch_adam, not included in any of the above
  std::optional<UpdateSummary> watch = {};  // of rank 0, in the steps selected by run.watch_every
  std::optional<AdamComparison> adam = {};  // in the same steps, of all ranks, with run.watch_adam
};

class Engine {
 public:
  // `table` is allocated and outlives the engine, as do context and communicator. Collective.
  // Errors: the batch sizes do not fit the ranks, the optimizer or scheduler section is wrong.
  Engine(Context& context, ParameterTable& table, const EngineConfig& config,
         comm::Communicator& communicator);

  // With run.uneven_batches its micro-batch is the largest, and any may be smaller or empty: the
  // gradient is still the mean if items are weighted as described above.
  const BatchSizes& batch() const { return batch_; }
  const EngineConfig& config() const { return config_; }
  const ParameterTable& table() const { return table_; }
  const Context& context() const { return context_; }
  // Every key of the recipe that was read, with the value in effect, including defaults and the
  // solved batch sizes.
  Json resolved_recipe() const;
  int64_t completed_steps() const { return completed_steps_; }
  optim::Optimizer& optimizer() { return *optimizer_; }
  const optim::Schedule& schedule() const { return *schedule_; }
  const LevelsChoice& levels() const { return levels_; }
  // The memory of the copies of matrices that products use, or 0 without copies.
  int64_t packed_bytes() const { return packed_bytes_; }

  // One micro-step: calls `run`, which adds to the table's gradients or overwrites stale ones
  // (tensor/parameter_table.h).
  void backward(const std::function<void(const BackwardInput&)>& run);
  // The two halves of backward(), for a caller that does not make the backward pass itself, for
  // example an autograd library that reports when a gradient is complete. The call that ends the
  // micro-step gets what the one that began it has returned.
  BackwardInput begin_backward();
  void end_backward(const BackwardInput& input);
  // After the last micro-step of a step: exchanges remaining buckets, clips, updates. Else empty. A
  // caller with its own schedule gives the learning rate of this update. Errors: max_skipped_steps
  // steps in a row were not finite. It names tensor, rank and step.
  std::optional<StepOutcome> step(std::optional<double> learning_rate = {});

  // The settings of the groups of parameters (ParameterDeclaration::group) from the next pass on,
  // and of the coming step() as far as they are no part of the gradient: all are given, in every
  // step or in none. At first the recipe's weight decay and the learning rate apply to all.
  void set_groups(std::vector<optim::UpdateGroup> groups);

  // Calls `work` while the table holds the values that all ranks have in common, for code that
  // reads them for all ranks, since an optimizer may make its own updates between exchanges.
  template <typename Work>
  void with_common_values(const Work& work) {
    optimizer_->show_common_values(context_, table_);
    packed_.changed();
    work();
    optimizer_->restore_own_values(context_, table_);
    packed_.changed();
  }

  // Sets the values of all ranks to the values of rank 0, which are sent only if some rank differs,
  // and refreshes the compute copy. Call it after initialising or loading values by hand.
  void broadcast_values();
  // Whether all ranks have bit-identical values. Collective, in with_common_values().
  bool replicas_agree();

  // Saves the engine's state: optimizer, loss scale, counters. In with_common_values(), in which
  // the values are saved as well.
  void save(optim::StateWriter& writer) const;
  // Errors: the state belongs to another optimizer or shape. The values of the table must already
  // be loaded.
  void load(const optim::StateReader& reader);

 private:
  // How the gradients of an update reach the optimizer: averaged over ranks, as this rank's own,
  // bucket by bucket during the backward pass, or as this rank's own after it.
  enum class GradientRoute { kAveraged, kLocalEarly, kLocalLate };

  void begin_update();
  void clear_stale_gradients(Range range);
  void prepare_last_micro_step(BackwardInput& input);
  void find_local_route();
  void report_unknown_noise();
  void show_local_gradients(Context& context, Range range);
  optim::StepInput step_input(double gradient_scale, std::optional<double> rate = {}) const;
  optim::GradientNorm decide();
  StepOutcome update(const optim::GradientNorm& norm, std::optional<double> learning_rate);
  void account(StepOutcome& outcome);
  void count_skip(const optim::GradientNorm& norm);
  [[noreturn]] void stop_not_finite(const optim::GradientNorm& norm);
  int64_t wire_bytes_sent() const;
  int64_t watch_bytes_sent() const;
  // The number of local gradients that the compressed phase averages.
  int sources() const;

  Context& context_;
  ParameterTable& table_;
  EngineConfig config_;
  comm::Communicator& communicator_;
  BatchSizes batch_;
  LevelsChoice levels_;
  PackedMatrices packed_;
  int64_t packed_bytes_ = 0;
  std::unique_ptr<optim::Schedule> schedule_;
  std::unique_ptr<comm::Communicator> optimizer_communicator_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::GradientClipper clipper_;
  optim::LossScaler scaler_;
  std::unique_ptr<GradientExchange> exchange_;  // null with one rank
  GradientRoute route_ = GradientRoute::kAveraged;
  std::span<const double> norm_limits_;  // of this step, on the early route
  std::vector<optim::UpdateGroup> groups_;
  bool reported_waiting_ = false, reported_noise_ = false;
  std::unique_ptr<UpdateWatch> watch_;  // on rank 0, if requested
  std::unique_ptr<comm::Communicator> shadow_communicator_;
  std::unique_ptr<AdamShadow> shadow_;  // if requested
  int64_t micro_step_ = 0;
  int64_t completed_steps_ = 0, skipped_steps_ = 0, skipped_in_a_row_ = 0;
  int64_t wire_bytes_before_ = 0, inside_bytes_before_ = 0, watch_bytes_before_ = 0;
  comm::ExchangeSeconds seconds_before_;
};

}  // namespace onebit::engine
