#include "onebit/exchange/engine/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "onebit/exchange/comm/collectives.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/device/device_stream.h"
#include "onebit/math/device/profile.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"

namespace onebit::engine {
namespace {

constexpr const char* kOptimizerPhase = "optimizer";

}  // namespace

Engine::Engine(Context& context, ParameterTable& table, const EngineConfig& config,
               comm::Communicator& communicator)
    : context_(context),
      table_(table),
      config_(config),
      communicator_(communicator),
      batch_(solve_batch_sizes(config.batch, communicator.world_size(), config.place)),
      levels_(choose_levels(config, communicator.nodes(), table.size_elements())),
      clipper_(config.gradient_clipping),
      scaler_(config.loss_scale) {
  ONEBIT_INVARIANT(config.optimizer != nullptr);
  if (!context.device().is_cpu()) context.cuda().allow_tf32(config.run.tf32);
  if (config.packs_weights(batch_.accumulation, ops::bf16_gains_from_copies(context))) {
    packed_ = PackedMatrices(context, table);
    packed_bytes_ = PackedMatrices::bytes(table, config.compute);
  }
  std::vector<std::string> warnings;
  schedule_ = config.scheduler.make(config.run.steps, warnings);
  for (const std::string& warning : warnings) log_warning("{}", warning);
  optimizer_communicator_ = communicator.duplicate();
  optim::RunFacts run = config.run_facts(*schedule_);
  run.two_levels = levels_.two;
  const std::string conflict = config.optimizer->conflict_with(run);
  require(conflict.empty(), "{}: key `optimizer.params` {}", config.place, conflict);
  for (const std::string& warning : config.optimizer->warnings(run)) log_warning("{}", warning);
  optimizer_ = config.optimizer->make(table, *optimizer_communicator_, run);
  clipper_.set_sources(sources());
  const bool early = config.why_compressed_buckets_wait().empty();
  const auto buckets = optimizer_->limited_buckets();
  if (early && config.gradient_clipping > 0 && buckets) clipper_.follow_buckets(*buckets);
  if (communicator.world_size() > 1) {
    if (config.wire == DType::kF16 && config.compute != DType::kF16 && communicator.rank() == 0) {
      log_warning(
          "communication_data_type is fp16 without a loss scale: averaged gradients below 3e-8 "
          "become zero, and entries that never had a larger gradient do not change after the "
          "freeze; use bf16");
    }
    exchange_ = std::make_unique<GradientExchange>(communicator, table, config.run.bucket_bytes,
                                                   config.wire);
  }
  if (config.run.watch_every > 0 && communicator.rank() == 0) {
    watch_ = std::make_unique<UpdateWatch>(table, config.run.watch_tensors);
  }
  if (config.run.watch_adam) {
    // Its traffic is not part of the run and counted separately.
    shadow_communicator_ = communicator.duplicate();
    shadow_communicator_->count_inside_node_separately();
    shadow_ = std::make_unique<AdamShadow>(table, *config.optimizer->followed_adam(),
                                           config.gradient_clipping, *shadow_communicator_);
  }
}

void Engine::begin_update() {
  const PhaseSpan phase(context_, kOptimizerPhase);
  ops::fill_zero(context_, table_.gradients(),
                 table_.stale_gradients().begin_update(table_.size_elements()));
  packed_.changed();
  wire_bytes_before_ = wire_bytes_sent();
  inside_bytes_before_ = communicator_.bytes_sent_inside_node();
  watch_bytes_before_ = watch_bytes_sent();
  if (exchange_) seconds_before_ = exchange_->seconds();
}

void Engine::backward(const std::function<void(const BackwardInput&)>& run) {
  const BackwardInput input = begin_backward();
  run(input);
  end_backward(input);
}

BackwardInput Engine::begin_backward() {
  require(micro_step_ < batch_.accumulation,
          "backward() was called more than gradient_accumulation_steps ({}) times without step()",
          batch_.accumulation);
  if (micro_step_ == 0) begin_update();
  BackwardInput input{.loss_scale = scaler_.scale(), .gradients_ready = {}};
  if (micro_step_ + 1 == batch_.accumulation) prepare_last_micro_step(input);
  return input;
}

void Engine::end_backward(const BackwardInput& input) {
  clear_stale_gradients({0, table_.size_elements()});
  const bool last = micro_step_ + 1 == batch_.accumulation;
  if (last && !input.gradients_ready && route_ == GradientRoute::kAveraged && exchange_) {
    exchange_->ready({0, table_.size_elements()});
  }
  ++micro_step_;
}

// Clears the gradients of parameters that the pass has not used, for example of dropped layers.
void Engine::clear_stale_gradients(Range range) {
  ops::fill_zero(context_, table_.gradients(), table_.stale_gradients().take(range));
}

void Engine::prepare_last_micro_step(BackwardInput& input) {
  if (optimizer_->gradient_need() == optim::GradientNeed::kAveragedOverRanks) {
    route_ = GradientRoute::kAveraged;
    norm_limits_ = {};
    if (!exchange_) return;
    exchange_->begin(
        context_, [this](Context& context, Range range) { show_local_gradients(context, range); });
    if (config_.run.overlap) {
      input.gradients_ready = [this](Range range) {
        clear_stale_gradients(range);
        exchange_->ready(range);
      };
    }
    return;
  }
  find_local_route();
  if (route_ == GradientRoute::kLocalEarly) {
    optimizer_->begin_step(context_, table_, step_input(1));
    input.gradients_ready = [this](Range range) {
      clear_stale_gradients(range);
      optimizer_->gradients_ready(range);
    };
  }
}

// Buckets can be sent early if the factor of their gradients is known as soon as they are complete.
void Engine::find_local_route() {
  route_ = GradientRoute::kLocalLate;
  norm_limits_ = {};
  report_unknown_noise();
  if (!config_.why_compressed_buckets_wait().empty()) return;
  norm_limits_ = clipper_.norm_limits();
  if (config_.gradient_clipping == 0 || !norm_limits_.empty()) {
    route_ = GradientRoute::kLocalEarly;
    return;
  }
  const int64_t missing = clipper_.steps_missing();
  if (missing > 0 && !reported_waiting_ && communicator_.rank() == 0) {
    log_info(
        "update {}: the norm's distribution over buckets has not been measured yet: for {} updates "
        "clipping is exact, and buckets are sent after the backward pass",
        completed_steps_ + 1, missing);
  }
  reported_waiting_ = true;
}

// After a run on one rank, which cannot distinguish noise from signal, or an unobserved warm-up.
void Engine::report_unknown_noise() {
  const bool wanted = config_.gradient_clipping > 0 && sources() > 1 && !clipper_.ratio_known();
  if (wanted && !reported_noise_ && communicator_.rank() == 0) {
    log_info(
        "update {}: the noise of gradients has not been measured yet: until nine updates have "
        "exchanged one bit per element, gradient_clipping overestimates the norm by a factor of up "
        "to {:.2f}",
        completed_steps_ + 1, std::sqrt(sources()));
  }
  reported_noise_ = true;
}

void Engine::show_local_gradients(Context& context, Range range) {
  if (!optimizer_->observes_local_gradients()) return;
  clipper_.observe_local_gradients(context, table_.gradients(), range);
}

// Until step() is called, the rate of the caller is not known. An optimizer reads it only there.
optim::StepInput Engine::step_input(double gradient_scale, std::optional<double> given) const {
  const optim::Rate rate = schedule_->at(completed_steps_ + 1);
  return {.step = completed_steps_ + 1,
          .learning_rate = given.value_or(rate.learning_rate),
          .gradient_scale = gradient_scale,
          .norm_limits = norm_limits_,
          .beta1 = rate.beta1,
          .groups = groups_};
}

void Engine::set_groups(std::vector<optim::UpdateGroup> groups) {
  const auto count = static_cast<size_t>(table_.group_count());
  require(groups.size() == count, "{} groups of parameters have settings, and there are {}",
          groups.size(), count);
  groups_ = std::move(groups);
}

std::optional<StepOutcome> Engine::step(std::optional<double> learning_rate) {
  if (micro_step_ < batch_.accumulation) return std::nullopt;
  micro_step_ = 0;
  const PhaseSpan phase(context_, kOptimizerPhase);
  if (route_ == GradientRoute::kAveraged) {
    if (exchange_) {
      exchange_->finish(context_);
    } else {
      show_local_gradients(context_, {0, table_.size_elements()});
    }
  }
  const optim::GradientNorm norm = decide();
  const int64_t watch_every = config_.run.watch_every;
  const bool is_watched = watch_every > 0 && (completed_steps_ + 1) % watch_every == 0;
  const bool watched = watch_ && is_watched;
  if (watched) watch_->before_step();
  // In the compressed phase the gradients remain the rank's own until the next step.
  const optim::StepInput shadowed = step_input(1 / scaler_.scale(), learning_rate);
  const bool shadows = shadow_ && norm.finite;
  if (shadows) shadow_->before_step(route_ == GradientRoute::kAveraged, shadowed);
  StepOutcome outcome = update(norm, learning_rate);
  packed_.changed();
  if (watched) {
    outcome.watch = watch_->after_step(std::max(outcome.learning_rate, outcome.gathered_rate));
  }
  if (shadows) shadow_->after_step(shadowed);
  if (shadows && is_watched) outcome.adam = shadow_->compare();
  if (outcome.applied) {
    ++completed_steps_;
    skipped_in_a_row_ = 0;
  } else {
    count_skip(norm);
  }
  scaler_.update(!outcome.applied);
  outcome.step = completed_steps_;
  outcome.skipped_steps = skipped_steps_;
  account(outcome);
  return outcome;
}

// On the early route the decision is made inside the exchange and returned in its report.
optim::GradientNorm Engine::decide() {
  if (route_ == GradientRoute::kLocalEarly) return {};
  const optim::GradientNeed need = optimizer_->gradient_need();
  std::vector<Range> ranges;
  if (need == optim::GradientNeed::kLocalOnly) {
    ranges = optimizer_->prepare_local_gradients(context_, table_);
  }
  return clipper_.agree(context_, communicator_, table_.gradients(), need, 1 / scaler_.scale(),
                        ranges);
}

int Engine::sources() const {
  return levels_.two ? communicator_.nodes().count() : communicator_.world_size();
}

StepOutcome Engine::update(const optim::GradientNorm& norm, std::optional<double> learning_rate) {
  const optim::StepInput input = step_input(norm.coefficient / scaler_.scale(), learning_rate);
  optim::StepReport report{.phase = optimizer_->phase(), .applied = norm.finite};
  if (norm.finite) {
    report = optimizer_->step(context_, table_, input);
  } else {
    optimizer_->skip_step();
  }
  double gradient_norm = norm.norm;
  if (route_ == GradientRoute::kLocalEarly) {
    // The estimate uses the same ratio as the limits.
    gradient_norm = clipper_.ratio() * std::sqrt(report.local_gradient_square);
  } else {
    report.clip_coefficient = norm.coefficient;
  }
  if (norm.finite) {
    clipper_.follow(report.norm_ratio,
                    report.applied ? std::span(report.bucket_squares) : std::span<const double>());
  }
  StepOutcome outcome{std::move(report)};
  outcome.learning_rate = input.learning_rate;
  outcome.gradient_norm = gradient_norm;
  outcome.loss_scale = scaler_.scale();
  return outcome;
}

void Engine::account(StepOutcome& outcome) {
  outcome.wire_bytes = wire_bytes_sent() - wire_bytes_before_;
  outcome.wire_bytes_inside_node = communicator_.bytes_sent_inside_node() - inside_bytes_before_;
  outcome.watch_bytes = watch_bytes_sent() - watch_bytes_before_;
  outcome.wire_bytes_dense16 =
      comm::ring_bytes_16bit(table_.size_elements(), communicator_.world_size());
  if (exchange_) {
    outcome.compress_seconds += exchange_->seconds().compute - seconds_before_.compute;
    outcome.wait_seconds += exchange_->seconds().wait - seconds_before_.wait;
  }
}

int64_t Engine::wire_bytes_sent() const {
  return communicator_.wire_bytes_sent() + optimizer_communicator_->wire_bytes_sent() +
         optimizer_->wire_bytes_sent() + (exchange_ ? exchange_->wire_bytes_sent() : 0);
}

int64_t Engine::watch_bytes_sent() const {
  return shadow_communicator_ ? shadow_communicator_->wire_bytes_sent() : 0;
}

void Engine::count_skip(const optim::GradientNorm& norm) {
  ++skipped_steps_;
  ++skipped_in_a_row_;
  const bool scale_can_shrink = config_.compute == DType::kF16 &&
                                config_.loss_scale.static_scale == 0 &&
                                scaler_.scale() > config_.loss_scale.min_scale;
  if (scale_can_shrink) {
    if (communicator_.rank() == 0) {
      log_info("step {}: a gradient overflowed at loss scale {}; the step is skipped on all ranks",
               completed_steps_ + 1, scaler_.scale());
    }
    return;
  }
  if (communicator_.rank() == 0) {
    log_warning("step {}: a gradient is not finite; the step is skipped on all ranks ({} in a row)",
                completed_steps_ + 1, skipped_in_a_row_);
  }
  if (skipped_in_a_row_ >= config_.run.max_skipped_steps) stop_not_finite(norm);
}

// Every rank ends with the diagnosis of the first rank whose own gradient was bad.
void Engine::stop_not_finite(const optim::GradientNorm& norm) {
  const bool averaged = route_ == GradientRoute::kAveraged && exchange_ != nullptr;
  const std::string mine = averaged && !exchange_->local().finite
                               ? exchange_->local().first_bad
                               : optim::first_non_finite(table_, 1 / scaler_.scale());
  const bool bad = averaged ? !exchange_->local().finite : !mine.empty();
  int64_t first_bad = bad ? communicator_.rank() : communicator_.world_size();
  communicator_.all_reduce(std::span(&first_bad, 1), comm::Reduction::kMin);
  const int root = first_bad < communicator_.world_size() ? static_cast<int>(first_bad)
                                                          : std::max(norm.first_bad_rank, 0);
  std::array<char, 512> text{};
  std::strncpy(text.data(), mine.c_str(), text.size() - 1);
  communicator_.broadcast(std::as_writable_bytes(std::span(text)), root);
  const std::string what =
      text[0] == '\0' ? "the norm of the gradient is larger than 1e15"
                      : fmt::format("the first such entry is {} on rank {}", text.data(), root);
  fail(
      "{} consecutive steps had a gradient that is not finite. At step {} {}. No value that is not "
      "finite has moved a parameter; lower the learning rate, turn on "
      "gradient_clipping, or inspect the data of this step (run.max_skipped_steps sets how many "
      "such steps end the run)",
      skipped_in_a_row_, completed_steps_ + 1, what);
}

void Engine::broadcast_values() {
  comm::broadcast_values(table_, communicator_);
  optim::refresh_compute_copy(context_, table_);
  packed_.changed();
}

bool Engine::replicas_agree() {
  return comm::replicas_agree(table_, communicator_);
}

Json Engine::resolved_recipe() const {
  Json recipe = config_.recipe.resolved();
  if (config_.scheduler.ends_with_run) {
    recipe["scheduler"]["params"]["total_num_steps"] = config_.scheduler.rest_of(config_.run.steps);
  }
  recipe["train_batch_size"] = batch_.train;
  recipe["train_micro_batch_size_per_gpu"] = batch_.micro;
  recipe["gradient_accumulation_steps"] = batch_.accumulation;
  return recipe;
}

void Engine::save(optim::StateWriter& writer) const {
  writer.scalar("engine", Json{{"completed_steps", completed_steps_},
                               {"skipped_steps", skipped_steps_},
                               {"loss_scaler", scaler_.save()},
                               {"clipper", clipper_.save(sources())}});
  optimizer_->save(writer);
}

void Engine::load(const optim::StateReader& reader) {
  const Json state = reader.scalar("engine");
  require(state.is_object(),
          "the checkpoint's state.json contains no counters of a run: it is damaged or was written "
          "by another program; resume from another checkpoint with --resume TAG");
  completed_steps_ = state.at("completed_steps").get<int64_t>();
  skipped_steps_ = state.at("skipped_steps").get<int64_t>();
  scaler_.load(state.at("loss_scaler"));
  clipper_.load(state.at("clipper"), sources());
  micro_step_ = 0;
  reported_waiting_ = reported_noise_ = false;
  optimizer_->load(context_, table_, reader);
  packed_.changed();
}

}  // namespace onebit::engine
