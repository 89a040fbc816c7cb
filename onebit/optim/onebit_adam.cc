#include "onebit/optim/onebit_adam.h"

#include <array>
#include <numeric>

#include "onebit/base/clock.h"
#include "onebit/base/log.h"
#include "onebit/ops/onebit_update.h"

namespace onebit::optim {
namespace {

template <typename T>
void read_into(std::vector<T>& host, ConstView view) {
  copy(View::of(host.data(), {static_cast<int64_t>(host.size())}), view);
}

}  // namespace

OneBitAdam::OneBitAdam(const OptimizerConfig& config, const params::Table& table,
                       comm::Communicator& communicator, const RunFacts& run)
    : config_(config),
      run_(run),
      communicator_(communicator),
      moments_(table, config.weight_decay),
      freeze_rule_(config, run),
      level_(comm::blocks_in(table.size_elements())),
      noise_(comm::blocks_in(table.size_elements())),
      still_(table, config.moving_rows) {
  ONEBIT_INVARIANT(preconditioned() || !is_local());
  const int64_t blocks = comm::blocks_in(table.size_elements());
  const auto count = static_cast<size_t>(blocks);
  // Nobody asks for it where the variance is frozen.
  const bool has_energy = config.variance != Variance::kFrozen;
  energy_ = Tensor::zeros(table.device(), DType::kF32, {has_energy ? blocks : 0});
  square_ = Tensor::zeros(table.device(), DType::kF64, {blocks});
  flags_ = Tensor::zeros(table.device(), DType::kU8, {blocks});
  factor_ = Tensor::zeros(table.device(), DType::kF32, {blocks});
  ratio_ = Tensor::zeros(table.device(), DType::kF32, {is_local() ? blocks : 0});
  host_energy_.resize(has_energy ? count : 0);
  host_factor_.resize(count);
  host_square_.resize(count);
  host_flags_.resize(count);
}

GradientNeed OneBitAdam::gradient_need() const {
  return phase_ == Phase::kWarmup ? GradientNeed::kAveragedOverRanks : GradientNeed::kLocalOnly;
}

bool OneBitAdam::observes_local_gradients() const {
  return phase_ == Phase::kWarmup && freeze_rule_.observes(updates_ + 1);
}

void OneBitAdam::observe_local_gradients(Context& context, const params::Table& table,
                                         params::Range range) {
  // One rank's gradients are the average: there is no noise to tell from it.
  const bool of_use = has_level() || (is_local() && communicator_.world_size() > 1);
  if (!of_use || updates_ < LiveLevel::kLeastUpdates) return;
  measure_energy(context, table, range);
  observed_ = true;
}

void OneBitAdam::measure_energy(Context& context, const params::Table& table, params::Range range) {
  ops::onebit_energy(context, {.gradient = table.gradients(),
                               .variance = moments_.variance(),
                               .block_energy = energy_.view(),
                               .begin = range.begin,
                               .end = range.end,
                               .epsilon = config_.epsilon,
                               .variance_factor = 1 / moments_.variance_weight(config_)});
}

void OneBitAdam::skip_step() {
  ONEBIT_INVARIANT(!begun_);
  observed_ = false;
}

StepReport OneBitAdam::step(Context& context, params::Table& table, const StepInput& input) {
  return phase_ == Phase::kWarmup ? warmup_step(context, table, input)
                                  : compressed_step(context, table, input);
}

StepReport OneBitAdam::warmup_step(Context& context, params::Table& table, const StepInput& input) {
  StepReport report{.phase = Phase::kWarmup};
  const Stopwatch watch;
  if (observed_) observe_warmup(context, table, input);
  moments_.step(context, table, config_, input);
  ++updates_;
  if (freeze_rule_.freezes_after(context, communicator_, updates_, moments_.variance(),
                                 1 / moments_.variance_weight(config_))) {
    freeze(context, table);
    report.froze_now = true;
    report.still_elements = still_.count();
  }
  report.update_seconds = watch.seconds();
  return report;
}

void OneBitAdam::observe_warmup(Context& context, const params::Table& table,
                                const StepInput& input) {
  observed_ = false;
  const auto read_energy = [&] {
    read_into(host_energy_, energy_.view());
    const double square = input.gradient_scale * input.gradient_scale;
    for (float& energy : host_energy_) energy = static_cast<float>(energy * square);
  };
  read_energy();
  if (has_level()) return level_.observe(host_energy_);
  const std::vector<float> own = host_energy_;
  measure_energy(context, table, {0, table.size_elements()});  // of the average by now
  read_energy();
  noise_.observe(own, host_energy_);
}

void OneBitAdam::freeze(Context& context, params::Table& table) {
  ops::onebit_freeze(context, {.momentum = momentum(),
                               .variance = inverse(),
                               .still = still_.bitmap(),
                               .epsilon = config_.epsilon,
                               .variance_factor = 1 / moments_.variance_weight(config_),
                               .preconditioned = preconditioned()});
  still_.hold(momentum(), inverse());
  still_.refresh();
  if (has_level()) level_.start(communicator_);
  if (is_local()) noise_.settle(communicator_);
  phase_ = Phase::kCompressed;
  make_exchange(table);
  if (communicator_.rank() == 0) {
    log_info("update {}: 1-bit Adam freezes; {} of {} elements have had no gradient and stay still",
             updates_, still_.count(), table.size_elements());
  }
}

void OneBitAdam::make_exchange(const params::Table& table) {
  if (is_local()) {
    const std::vector<float> ratios = noise_.ratios(communicator_.world_size());
    copy(ratio_.view(), ConstView::of(ratios.data(), ratio_.shape()));
  }
  const compress::CompressionOptions options{
      .scale = config_.scale == ScaleRule::kMeanAbsolute ? compress::ScaleKind::kMeanAbsolute
                                                         : compress::ScaleKind::kRootMeanSquare,
      .extra = has_level() ? compress::ExtraType::kBF16 : compress::ExtraType::kNone,
      .bypass_single_rank = true};
  exchange_ = std::make_unique<MomentumExchange>(
      communicator_, table, run_.bucket_bytes, options,
      ExchangeBuffers{.momentum = momentum(),
                      .still = still_.bitmap(),
                      .energy = has_level() ? energy_.view() : View()});
}

void OneBitAdam::begin_step(Context& computing, params::Table& table, const StepInput& input) {
  ONEBIT_INVARIANT(phase_ == Phase::kCompressed && !begun_);
  begun_ = true;
  exchange_->begin(computing, [this, &table, input](Context& context, params::Range range) {
    prepare(context, table, input, range);
  });
}

void OneBitAdam::gradients_ready(params::Range range) {
  ONEBIT_INVARIANT(begun_);
  exchange_->ready(range);
}

void OneBitAdam::prepare(Context& context, const params::Table& table, const StepInput& input,
                         params::Range range) {
  ops::onebit_momentum(
      context,
      {.momentum = momentum(),
       .inverse = inverse(),
       .block_ratio = is_local() ? ConstView(ratio_.view()) : ConstView(),
       .gradient = table.gradients(),
       .value = table.values(),
       .ranges = config_.decoupled_decay ? std::span<const ops::UpdateRange>() : moments_.ranges(),
       .block_energy = has_level() ? energy_.view() : View(),
       .block_square = square_.view(),
       .block_flags = flags_.view(),
       .begin = range.begin,
       .end = range.end,
       .gradient_scale = input.gradient_scale,
       .beta1 = input.beta1.value_or(config_.beta1),
       .beta2 = 1 - (1 - config_.beta2) / moments_.next_variance_weight(config_),
       .epsilon = config_.epsilon,
       .preconditioned = preconditioned()});
}

StepReport OneBitAdam::compressed_step(Context& context, params::Table& table,
                                       const StepInput& input) {
  if (!begun_) begin_step(context, table, input);
  begun_ = false;
  StepReport report{.phase = Phase::kCompressed};
  exchange_->finish(context);
  const Stopwatch watch;
  const compress::ResidualNorms norms = exchange_->norms();
  report.momentum_norm = norms.values;
  report.residual_norm = norms.worker_residual;
  report.compress_seconds = exchange_->compress_seconds();
  report.wait_seconds = exchange_->wait_seconds();
  moments_.advance_momentum_weight(input.beta1.value_or(config_.beta1));
  if (is_local()) moments_.advance_variance_weight(config_.beta2);

  std::vector<uint8_t> touched;
  const Agreement agreement = agree(table, touched);
  report.applied = agreement.finite;
  report.local_gradient_square = agreement.local_gradient_square;
  if (agreement.finite) {
    if (has_level()) {
      read_into(host_energy_, energy_.view());
      level_.update(host_energy_);
    }
    const int64_t still_before = still_.count();
    if (agreement.touched) wake(table, input, std::move(touched));
    report.woken_elements = still_before - still_.count();
    apply(context, table, input);
    ++updates_;
  }
  report.still_elements = still_.count();
  report.update_seconds = watch.seconds();
  return report;
}

OneBitAdam::Agreement OneBitAdam::agree(const params::Table& table, std::vector<uint8_t>& touched) {
  read_into(host_flags_, flags_.view());
  read_into(host_square_, square_.view());
  bool finite = true;
  for (const uint8_t flags : host_flags_) finite = finite && (flags & ops::kBlockNotFinite) == 0;
  touched = still_.touched_rows(table.gradients(), host_flags_);
  std::array<double, 3> sums{finite ? 0.0 : 1.0, touched.empty() ? 0.0 : 1.0,
                             std::accumulate(host_square_.begin(), host_square_.end(), 0.0)};
  communicator_.all_reduce(std::span<double>(sums), comm::Reduction::kSum);
  return {.finite = sums[0] == 0,
          .touched = sums[1] > 0,
          .local_gradient_square = sums[2] / communicator_.world_size()};
}

void OneBitAdam::wake(const params::Table& table, const StepInput& input,
                      std::vector<uint8_t> touched) {
  const auto woken = still_.wake(communicator_, std::move(touched),
                                 {.momentum = momentum(),
                                  .inverse = inverse(),
                                  .gradients = table.gradients(),
                                  .gradient_scale = input.gradient_scale,
                                  .beta1 = input.beta1.value_or(config_.beta1),
                                  .epsilon = config_.epsilon,
                                  .preconditioned = preconditioned()});
  if (!has_level()) return;
  for (const auto& [block, live, elements] : woken) level_.join(block, live, elements);
}

void OneBitAdam::apply(Context& context, params::Table& table, const StepInput& input) {
  const double unbias = 1 / moments_.momentum_weight(config_);
  for (size_t block = 0; block < host_factor_.size(); ++block) {
    const double brake = has_level() ? level_.brake(static_cast<int64_t>(block)) : 1.0;
    host_factor_[block] = static_cast<float>(unbias * brake);
  }
  copy(factor_.view(),
       ConstView::of(host_factor_.data(), {static_cast<int64_t>(host_factor_.size())}));
  std::vector<ops::UpdateRange> no_decay;
  std::span<const ops::UpdateRange> ranges = moments_.ranges();
  if (!config_.decoupled_decay) {
    no_decay.push_back({0, table.size_elements(), 0});
    ranges = no_decay;
  }
  const bool copies = table.compute_type() != DType::kF32;
  ops::onebit_step(context, {.value = table.values(),
                             .compute_value = copies ? table.compute_values() : View(),
                             .momentum = momentum(),
                             .inverse = preconditioned() ? View() : inverse(),
                             .still = still_.bitmap(),
                             .block_factor = factor_.view(),
                             .ranges = ranges,
                             .learning_rate = input.learning_rate});
}

}  // namespace onebit::optim
