#include "onebit/exchange/one_bit/compressed_optimizer.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <span>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/updates/onebit_adam_update.h"

namespace onebit::optim {

ExchangeOptions read_exchange_options(Keys& params, double beta2) {
  ExchangeOptions options;
  params.require(beta2 > 0, "betas",
                 "ends with 0: the variance would be that of a single gradient, and only its signs "
                 "would be left after the division; give a second number above 0, such as 0.999");
  params.counts("exp_avg_mask", options.moving_rows,
                "{tensor name: number of rows that are updated}. Later rows do not change in the "
                "compressed phase");
  params.fixed("eps_inside_sqrt", false, "eps is added outside the root");
  return options;
}

std::vector<std::pair<std::string, std::string>> compressed_phase_rows(const FreezeOptions& options,
                                                                       double beta2,
                                                                       const RunFacts& run,
                                                                       int world_size) {
  const std::string when = describe(options, beta2, run);
  return {{"compressed phase",
           world_size == 1 ? fmt::format("a run on one rank sends nothing; {}{}",
                                         run.compressed ? "frozen " : "freeze ", when)
                           : fmt::format("{}{}; gradient / sqrt(variance) at one bit per element",
                                         run.compressed ? "started " : "", when)}};
}

namespace {

StateSizes sizes_of(const CompressedOptions& options, const ParameterTable& table,
                    const StateDivision& division) {
  return {CompressedOptimizer::layout(options, table, division), division};
}

}  // namespace

CompressedOptimizer::CompressedOptimizer(const CompressedOptions& options,
                                         const ParameterTable& table,
                                         comm::Communicator& communicator, const RunFacts& run)
    : options_(options),
      communicator_(communicator),
      topology_(communicator, divide_exchange(table.size_elements(), communicator.nodes(), run),
                table.device()),
      sizes_(sizes_of(options, table, {topology_.ownership(), communicator.rank()})),
      rule_(options.adam, table),
      state_(Moments::zeros(table)),
      freeze_rule_(options.freeze, options.adam.beta2, run),
      still_(table, options.exchange.moving_rows),
      variance_sums_(table, topology_),
      agreement_(topology_, table.device()),
      momentum_(topology_, still_.bitmap()),
      buffers_(bucket_layout(), topology_, table.device()) {
  if (options.schedule) {
    local_ = std::make_unique<LocalUpdates>(*options.schedule, table, topology_);
  }
  values_ = options.values(table, momentum_);
  if (alone()) return;
  exchange_ = std::make_unique<comm::OverlappedExchange>(
      topology_.across(), topology_.buckets(), table.device(), topology_.ownership().buckets,
      momentum_.all_reduce().stations([this](Context& context, const comm::BucketInFlight& now) {
        return fill(context, now);
      }));
  if (topology_.two_levels()) exchange_->also_uses(topology_.node());
}

Phase CompressedOptimizer::phase() const {
  return std::holds_alternative<Moments>(state_) ? Phase::kWarmup : Phase::kCompressed;
}

GradientNeed CompressedOptimizer::gradient_need() const {
  const bool averages = phase() == Phase::kWarmup || next_plan().averages;
  return averages ? GradientNeed::kAveragedOverRanks : GradientNeed::kLocalOnly;
}

bool CompressedOptimizer::observes_local_gradients() const {
  return phase() == Phase::kWarmup && freeze_rule_.observes(updates_ + 1);
}

std::optional<comm::Buckets> CompressedOptimizer::limited_buckets() const {
  if (alone()) return std::nullopt;
  return topology_.ownership().buckets;
}

void CompressedOptimizer::skip_step() {
  ONEBIT_INVARIANT(!begun_);
  prepared_ = false;
}

std::vector<Range> CompressedOptimizer::prepare_local_gradients(Context& context,
                                                                ParameterTable& table) {
  std::vector<Range> ranges;
  for (int64_t bucket = 0; topology_.two_levels() && bucket < topology_.buckets().count();
       ++bucket) {
    topology_.average(context, table.gradients(), bucket);
  }
  prepared_ = topology_.two_levels();
  for (const auto& share : topology_.shares()) {
    ranges.push_back(share.range);
  }
  return ranges;
}

StepReport CompressedOptimizer::step(Context& context, ParameterTable& table,
                                     const StepInput& input) {
  ONEBIT_INVARIANT(!local_ || !local_->shows_common());
  StepReport report = phase() == Phase::kWarmup ? warmup_step(context, table, input)
                                                : compressed_step(context, table, input);
  if (local_ && report.applied) local_->count_update();
  return report;
}

StepReport CompressedOptimizer::warmup_step(Context& context, ParameterTable& table,
                                            const StepInput& input) {
  StepReport report{.phase = Phase::kWarmup};
  const Stopwatch watch;
  const Moments& moments = std::get<Moments>(state_);
  values_->update(context, table, moments, rule_, input);
  ++updates_;
  if (freeze_rule_.freezes_after(context, communicator_, updates_, moments.variance.view(),
                                 1 / rule_.variance_weight())) {
    freeze(context, table);
    report.froze_now = true;
    report.still_elements = still_.count();
  }
  report.update_seconds = watch.seconds();
  return report;
}

void CompressedOptimizer::freeze(Context& context, ParameterTable& table) {
  Moments moments = std::get<Moments>(std::move(state_));
  const View momentum = moments.momentum.view(), variance = moments.variance.view();
  updates::onebit_freeze(context, {.momentum = momentum,
                                   .variance = variance,
                                   .still = still_.bitmap(),
                                   .epsilon = options_.adam.epsilon,
                                   .variance_factor = 1 / rule_.variance_weight()});
  still_.hold(momentum, variance);
  still_.refresh();
  hold_normalized(std::move(moments), table.gradients());  // the update has read the gradients
  if (communicator_.rank() == 0 && still_.count() > 0) {
    log_info(
        "update {}: {} of {} elements have had no gradient yet (words or positions that have not "
        "occurred) and keep their values until they get one",
        updates_, still_.count(), table.size_elements());
  }
}

// The memory of the first moment is passed to the exchange: owners keep the momentum from now on.
void CompressedOptimizer::hold_normalized(Moments&& moments, View scratch) {
  if (local_) local_->freeze(moments.momentum.view());
  momentum_.hold(share_in_memory_of(std::move(moments.momentum), topology_, scratch));
  state_ = OwnVariance{share_in_memory_of(std::move(moments.variance), topology_, scratch)};
  values_->restart();
}

Moments CompressedOptimizer::release_normalized() {
  Tensor variance = std::get<OwnVariance>(std::move(state_)).tensor;
  return {.momentum = whole_in_memory_of(momentum_.release(), topology_),
          .variance = whole_in_memory_of(std::move(variance), topology_)};
}

UpdatePlan CompressedOptimizer::next_plan() const {
  if (local_) return local_->plan(rule_);
  return {.variance_memory = rule_.next_variance_memory()};
}

void CompressedOptimizer::begin_step(Context& computing, ParameterTable& table,
                                     const StepInput& input) {
  ONEBIT_INVARIANT(phase() == Phase::kCompressed && !begun_);
  begun_ = true;
  // The exchange thread reads these until it stops, which may be later than their owner's end.
  norm_limits_.assign(input.norm_limits.begin(), input.norm_limits.end());
  groups_.assign(input.groups.begin(), input.groups.end());
  table_ = &table;
  input_ = input;
  input_.norm_limits = norm_limits_;
  input_.groups = groups_;
  plan_ = next_plan();
  variance_sums_.begin_update();
  if (!plan_.exchanges) return;
  momentum_.scale_owner_residuals(plan_.updates);
  if (exchange_) exchange_->begin(computing);
}

// A single rank's variance contains every gradient, as Adam's, which bounds its updates.
double CompressedOptimizer::momentum_limit(const StepInput& input) const {
  return alone() ? std::numeric_limits<float>::max()
                 : rule_.momentum_limit(input, plan_.variance_memory);
}

void CompressedOptimizer::gradients_ready(Range range) {
  ONEBIT_INVARIANT(begun_);
  if (exchange_ && plan_.exchanges) exchange_->ready(range);
}

StepReport CompressedOptimizer::compressed_step(Context& context, ParameterTable& table,
                                                const StepInput& input) {
  if (!begun_) begin_step(context, table, input);
  begun_ = false;
  StepReport report{.phase = Phase::kCompressed};
  const Stopwatch watch = finish_buckets(context, report);
  prepared_ = false;
  const Agreed agreed = agree(context, table, input, report);
  if (agreed.finite) rule_.advance(input);
  report.applied = agreed.finite;
  move_values(context, table, input, agreed, report);
  if (report.applied) ++updates_;
  report.update_seconds = watch.seconds();
  return report;
}

Stopwatch CompressedOptimizer::finish_buckets(Context& context, StepReport& report) {
  if (!exchange_ || !plan_.exchanges) {
    const Stopwatch watch;
    for (int64_t index = 0; index < topology_.buckets().count(); ++index) {
      keep_bucket(context, bucket_at(index));
    }
    return watch;
  }
  exchange_->finish(context);
  const Stopwatch watch;
  const compress::ResidualNorms norms = momentum_.all_reduce().norms();
  const auto of_source = [&](double norm) {
    return topology_.two_levels() ? std::sqrt(topology_.sum(norm * norm)) : norm;
  };
  report.sent_norm = of_source(norms.values);
  report.residual_norm = of_source(norms.worker_residual);
  const comm::ExchangeSeconds& seconds = exchange_->step_seconds();
  report.compress_seconds = seconds.fill + seconds.compute;
  report.wait_seconds = seconds.wait;
  return watch;
}

compress::CompressedBucket CompressedOptimizer::fill(Context& context,
                                                     const comm::BucketInFlight& in_flight) {
  const Bucket bucket = bucket_at(in_flight.bucket);
  normalize(context, bucket);
  if (local_) local_->give(context, bucket.range, bucket.normalized);
  const auto& [begin, end] = bucket.in_buffer;
  return {.values = bucket.normalized,
          .still = still_.bitmap().rows(begin / 8, (end + 7) / 8),
          .extras = bucket.extra,
          .momentum =
              compress::momentum_step(rule_.beta1(input_), plan_.updates, momentum_limit(input_))};
}

CompressedOptimizer::Bucket CompressedOptimizer::bucket_at(int64_t index) const {
  const Range range = topology_.buckets().range(index);
  return {.index = index,
          .range = range,
          .in_buffer = topology_.in_buffer(index),
          .normalized = buffers_[kNormalized].rows(0, range.elements()),
          .extra = buffers_[kExtra].rows(0, comm::blocks_in(range.elements()))};
}

void CompressedOptimizer::normalize(Context& context, const Bucket& bucket) {
  if (topology_.two_levels() && !prepared_ && !plan_.averages) {
    topology_.average(context, table_->gradients(), bucket.index);
  }
  std::vector<updates::UpdateRange> decays;  // those that are part of the gradient
  if (!options_.adam.decoupled_decay) {
    const Range all{0, table_->size_elements()};
    decays = rule_.ranges_in(topology_.two_levels() ? bucket.in_buffer : all, input_.groups);
  }
  updates::OnebitNormalize args{
      .gradient = table_->gradients(),
      .value = table_->values(),
      .ranges = decays,
      .variance = variance(),
      .normalized = bucket.normalized,
      .extra = bucket.extra,
      .begin = bucket.range.begin,
      .end = bucket.range.end,
      .gradient_scale = agreement_.scale(context, table_->gradients(), input_, bucket.index),
      .epsilon = options_.adam.epsilon};
  if (plan_.averages) {
    args.alone = true;
    args.beta2 = plan_.variance_memory;
    ops::fill(context, bucket.extra, 0.0f);
  } else {
    variance_sums_.prepare(args, plan_.variance_memory, plan_.exchanges);
  }
  agreement_.prepare(args);
  if (topology_.two_levels()) cut_to_bucket(args, bucket.in_buffer);
  updates::onebit_normalize(context, args);
}

void CompressedOptimizer::keep_bucket(Context& context, const Bucket& bucket) {
  normalize(context, bucket);
  if (!plan_.exchanges) local_->keep(context, bucket.range, bucket.normalized);
  updates::onebit_momentum(context, {.momentum = kept_momentum(),
                                     .variance = variance(),
                                     .normalized = bucket.normalized,
                                     .extra = {},
                                     .begin = bucket.range.begin,
                                     .end = bucket.range.end,
                                     .beta1 = rule_.beta1(input_),
                                     .limit = momentum_limit(input_)});
}

CompressedOptimizer::Agreed CompressedOptimizer::agree(Context& context,
                                                       const ParameterTable& table,
                                                       const StepInput& input, StepReport& report) {
  std::span<const uint8_t> flags = agreement_.read_flags();
  std::vector<uint8_t> whole_flags;
  if (topology_.two_levels()) flags = whole_flags = topology_.spread_blocks(flags);
  std::vector<uint8_t> touched = still_.touched_rows(table.gradients(), flags);
  GradientAgreement::Result agreed = agreement_.agree(input, !touched.empty());
  report.local_gradient_square = agreed.square;
  report.bucket_squares = std::move(agreed.bucket_squares);
  if (agreed.limited_square < agreed.square) {
    report.clip_coefficient = std::sqrt(agreed.limited_square / agreed.square);
  }
  end_variance_update(context, agreed.finite);
  report.norm_ratio = variance_sums_.norm_ratio();
  const int64_t still_before = still_.count();
  Agreed result{.finite = agreed.finite, .woken = {}};
  if (agreed.finite && agreed.touched) result.woken = wake(table, input, std::move(touched));
  report.woken_elements = still_before - still_.count();
  report.still_elements = still_.count();
  return result;
}

void CompressedOptimizer::end_variance_update(Context& context, bool finite) {
  if (plan_.averages) return;
  if (!finite) {
    variance_sums_.take_back_update();
  } else if (plan_.exchanges) {
    if (exchange_) momentum_.all_reduce().decode_extras(context, variance_sums_.arrived());
    variance_sums_.end_exchange(context, variance(), plan_.variance_memory);
  } else {
    variance_sums_.end_update();
  }
}

void CompressedOptimizer::show_common_values(Context& context, ParameterTable& table) {
  if (local_) local_->show_common(context, table);
}

void CompressedOptimizer::restore_own_values(Context& context, ParameterTable& table) {
  if (local_) local_->restore_own(context, table);
}

int64_t CompressedOptimizer::wire_bytes_sent() const {
  return (exchange_ ? exchange_->wire_bytes_sent() : 0) + topology_.wire_bytes_sent();
}

}  // namespace onebit::optim
