#include "onebit/optim/onebit_adam.h"

#include <array>
#include <cmath>
#include <numeric>

#include "onebit/base/clock.h"
#include "onebit/base/log.h"
#include "onebit/ops/elementwise.h"
#include "onebit/ops/onebit_update.h"
#include "onebit/ops/reduce.h"

namespace onebit::optim {
namespace {

// The energies of the sub-blocks travel one after the other, then the sketch.
constexpr int64_t kTurns = kernels::kSubBlocks + 1;

template <typename T>
void read_into(std::vector<T>& host, ConstView view) {
  copy(View::of(host.data(), {static_cast<int64_t>(host.size())}), view);
}

std::vector<float> host_copy(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape().elements()));
  read_into(values, tensor.view());
  return values;
}

// Rows that are looked up get most of their gradient from the few samples that hold their word:
// one rank sees too few of them to know their variance, so its own count for 1 / ranks.
std::vector<float> own_weights(const params::Table& table, int world_size) {
  const int64_t blocks = comm::blocks_in(table.size_elements());
  std::vector<float> weights(static_cast<size_t>(blocks * kernels::kSubBlocks), 1.0f);
  for (const params::Parameter& parameter : table.parameters()) {
    if (!parameter.declaration.lookup) continue;
    const int64_t first = parameter.range.begin / kernels::kSubBlockElements;
    const int64_t last = (parameter.range.end - 1) / kernels::kSubBlockElements;
    std::fill(weights.begin() + first, weights.begin() + last + 1,
              1.0f / static_cast<float>(world_size));
  }
  return weights;
}

}  // namespace

OneBitAdam::OneBitAdam(const OptimizerConfig& config, const params::Table& table,
                       comm::Communicator& communicator, const RunFacts& run)
    : config_(config),
      communicator_(communicator),
      moments_(table, config.weight_decay),
      freeze_rule_(config, run),
      still_(table, config.moving_rows),
      noise_(comm::blocks_in(table.size_elements()), communicator.world_size()) {
  const Device device = table.device();
  const int64_t blocks = comm::blocks_in(table.size_elements());
  square_ = Tensor::zeros(device, DType::kF64, {blocks});
  flags_ = Tensor::zeros(device, DType::kU8, {blocks});
  host_square_.resize(static_cast<size_t>(blocks));
  host_flags_.resize(static_cast<size_t>(blocks));
  block_scale_.resize(static_cast<size_t>(blocks), 1.0);
  exchange_ = std::make_unique<GradientSigns>(communicator, table, run.bucket_bytes,
                                              still_.bitmap(), momentum());
  bucket_square_.resize(static_cast<size_t>(exchange_->buckets().count()));
  limited_square_.resize(bucket_square_.size());
  if (alone()) return;
  const std::vector<float> weights = own_weights(table, communicator.world_size());
  own_weight_ = Tensor::zeros(device, DType::kF32, {blocks * kernels::kSubBlocks});
  copy(own_weight_.view(), ConstView::of(weights.data(), own_weight_.shape()));
  energy_ = Tensor::zeros(device, DType::kF32, own_weight_.shape());
  for (Tensor* tensor : {&ratio_, &sketch_, &mean_sketch_, &block_energy_, &block_variance_}) {
    *tensor = Tensor::zeros(device, DType::kF32, {blocks});
  }
  show_ratios();
}

GradientNeed OneBitAdam::gradient_need() const {
  return phase_ == Phase::kWarmup ? GradientNeed::kAveragedOverRanks : GradientNeed::kLocalOnly;
}

bool OneBitAdam::observes_local_gradients() const {
  return phase_ == Phase::kWarmup && freeze_rule_.observes(updates_ + 1);
}

std::optional<comm::Buckets> OneBitAdam::limited_buckets() const {
  if (alone()) return std::nullopt;
  return exchange_->buckets();
}

void OneBitAdam::skip_step() {
  ONEBIT_INVARIANT(!begun_);
}

double OneBitAdam::variance_memory() const {
  return 1 - (1 - config_.beta2) / moments_.next_variance_weight(config_);
}

int64_t OneBitAdam::updates_in_turn() const {
  return std::min(kTurns, exchanges_ + 1);
}

StepReport OneBitAdam::step(Context& context, params::Table& table, const StepInput& input) {
  return phase_ == Phase::kWarmup ? warmup_step(context, table, input)
                                  : compressed_step(context, table, input);
}

StepReport OneBitAdam::warmup_step(Context& context, params::Table& table, const StepInput& input) {
  StepReport report{.phase = Phase::kWarmup};
  const Stopwatch watch;
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

void OneBitAdam::freeze(Context& context, params::Table& table) {
  ops::onebit_freeze(context, {.momentum = momentum(),
                               .variance = variance(),
                               .still = still_.bitmap(),
                               .epsilon = config_.epsilon,
                               .variance_factor = 1 / moments_.variance_weight(config_)});
  still_.hold(momentum(), variance());
  still_.refresh();
  exchange_->adopt_momentum({0, table.size_elements()});
  phase_ = Phase::kCompressed;
  if (communicator_.rank() == 0) {
    log_info("update {}: 1-bit Adam freezes; {} of {} elements have had no gradient and stay still",
             updates_, still_.count(), table.size_elements());
  }
}

void OneBitAdam::show_ratios() {
  const std::vector<float> ratios = noise_.ratios();
  copy(ratio_.view(), ConstView::of(ratios.data(), ratio_.shape()));
}

void OneBitAdam::begin_step(Context& computing, params::Table& table, const StepInput& input) {
  ONEBIT_INVARIANT(phase_ == Phase::kCompressed && !begun_);
  ONEBIT_INVARIANT(input.norm_limits.empty() || input.norm_limits.size() == bucket_square_.size());
  begun_ = true;
  exchange_->begin(
      computing, input.beta1.value_or(config_.beta1),
      [this, &table, input](Context& context, const GradientSigns::Bucket& bucket) {
        normalize(context, table, input, bucket);
      },
      [this, input](Context& context, const GradientSigns::Bucket& bucket) {
        receive(context, input, bucket);
      });
}

void OneBitAdam::gradients_ready(params::Range range) {
  ONEBIT_INVARIANT(begun_);
  exchange_->ready(range);
}

double OneBitAdam::scale_of(Context& context, const params::Table& table, const StepInput& input,
                            const GradientSigns::Bucket& bucket) {
  if (input.norm_limits.empty()) return input.gradient_scale;
  const auto index = static_cast<size_t>(bucket.index);
  const auto [begin, end] = bucket.range;
  const double square = input.gradient_scale * input.gradient_scale *
                        ops::squared_norm(context, table.gradients().rows(begin, end));
  bucket_square_[index] = square;
  limited_square_[index] = 0;
  // Times 0 what is not finite becomes NaN and is found, and the rest does not move by what no
  // limit could be put to.
  if (!std::isfinite(square)) return 0;
  const double limit = input.norm_limits[index], norm = std::sqrt(square);
  const double coefficient = norm > limit ? limit / norm : 1;
  limited_square_[index] = coefficient * coefficient * square;
  return coefficient * input.gradient_scale;
}

void OneBitAdam::normalize(Context& context, const params::Table& table, const StepInput& input,
                           const GradientSigns::Bucket& bucket) {
  const double scale = scale_of(context, table, input, bucket);
  const auto first = block_scale_.begin() + bucket.range.begin / kernels::kBlockElements;
  std::fill(first, first + comm::blocks_in(bucket.range.end - bucket.range.begin), scale);
  ops::onebit_normalize(
      context,
      {.gradient = table.gradients(),
       .value = table.values(),
       .ranges = config_.decoupled_decay ? std::span<const ops::UpdateRange>() : moments_.ranges(),
       .variance = variance(),
       .normalized = bucket.normalized,
       .extra = bucket.extra,
       .own_weight = own_weight_.view(),
       .block_ratio = ratio_.view(),
       .energy = energy_.view(),
       .sketch = sketch_.view(),
       .block_energy = block_energy_.view(),
       .block_variance = block_variance_.view(),
       .block_square = square_.view(),
       .block_flags = flags_.view(),
       .begin = bucket.range.begin,
       .end = bucket.range.end,
       .gradient_scale = scale,
       .beta2 = variance_memory(),
       .epsilon = config_.epsilon,
       .turn_factor = 1 / static_cast<double>(updates_in_turn()),
       .turn = exchanges_ % kTurns,
       .sketch_key = static_cast<uint64_t>(exchanges_ + 1),
       .alone = alone()});
}

void OneBitAdam::receive(Context& context, const StepInput& input,
                         const GradientSigns::Bucket& bucket) {
  const int64_t turn = exchanges_ % kTurns;
  ops::onebit_momentum(
      context, {.momentum = momentum(),
                .variance = variance(),
                .normalized = alone() ? ConstView(bucket.normalized) : ConstView(),
                .extra = alone() ? ConstView() : ConstView(bucket.extra),
                .begin = bucket.range.begin,
                .end = bucket.range.end,
                .beta1 = input.beta1.value_or(config_.beta1),
                .turn_memory = std::pow(variance_memory(), static_cast<double>(updates_in_turn())),
                .turn = turn});
  if (alone() || turn != kernels::kSubBlocks) return;
  const int64_t first = bucket.range.begin / kernels::kBlockElements;
  ops::cast(context, {.from = bucket.extra,
                      .to = mean_sketch_.view().rows(first, first + bucket.extra.elements())});
}

StepReport OneBitAdam::compressed_step(Context& context, params::Table& table,
                                       const StepInput& input) {
  if (!begun_) begin_step(context, table, input);
  begun_ = false;
  StepReport report{.phase = Phase::kCompressed};
  exchange_->finish(context);
  const Stopwatch watch;
  const compress::ResidualNorms norms = exchange_->norms();
  report.sent_norm = norms.values;
  report.residual_norm = norms.worker_residual;
  report.compress_seconds = exchange_->compress_seconds();
  report.wait_seconds = exchange_->wait_seconds();
  moments_.advance_momentum_weight(input.beta1.value_or(config_.beta1));
  moments_.advance_variance_weight(config_.beta2);

  std::vector<uint8_t> touched;
  Agreement agreement = agree(table, input, touched);
  report.applied = agreement.finite;
  report.local_gradient_square = agreement.local_gradient_square;
  report.bucket_squares = std::move(agreement.bucket_squares);
  if (agreement.limited_square < agreement.local_gradient_square) {
    report.clip_coefficient = std::sqrt(agreement.limited_square / agreement.local_gradient_square);
  }
  if (!alone() && exchanges_ % kTurns == kernels::kSubBlocks) end_cycle(context);
  ++exchanges_;
  report.norm_ratio = noise_.norm_ratio();
  if (agreement.finite) {
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

// With limits the squares of the buckets travel too: the limits of later steps are made of them.
OneBitAdam::Agreement OneBitAdam::agree(const params::Table& table, const StepInput& input,
                                        std::vector<uint8_t>& touched) {
  enum Slot : size_t { kNotFinite, kTouched, kSquare, kLimitedSquare, kBuckets };
  read_into(host_flags_, flags_.view());
  read_into(host_square_, square_.view());
  touched = still_.touched_rows(table.gradients(), host_flags_);
  const auto sum_of = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  std::vector<double> sums(kBuckets, 0.0);
  if (input.norm_limits.empty()) {
    sums[kSquare] = sums[kLimitedSquare] = sum_of(host_square_);
  } else {
    sums[kSquare] = sum_of(bucket_square_);
    sums[kLimitedSquare] = sum_of(limited_square_);
    sums.insert(sums.end(), bucket_square_.begin(), bucket_square_.end());
  }
  bool finite = std::isfinite(sums[kSquare]);
  for (const uint8_t flags : host_flags_) finite = finite && (flags & ops::kBlockNotFinite) == 0;
  for (double& one : sums) one = std::isfinite(one) ? one : 0;
  sums[kNotFinite] = finite ? 0 : 1;
  sums[kTouched] = touched.empty() ? 0 : 1;
  communicator_.all_reduce(std::span<double>(sums), comm::Reduction::kSum);
  for (size_t at = kSquare; at < sums.size(); ++at) sums[at] /= communicator_.world_size();
  return {.finite = sums[kNotFinite] == 0,
          .touched = sums[kTouched] > 0,
          .local_gradient_square = sums[kSquare],
          .limited_square = sums[kLimitedSquare],
          .bucket_squares = {sums.begin() + kBuckets, sums.end()}};
}

void OneBitAdam::wake(const params::Table& table, const StepInput& input,
                      std::vector<uint8_t> touched) {
  const std::vector<params::Range> rows = still_.wake(communicator_, std::move(touched),
                                                      {.momentum = momentum(),
                                                       .variance = variance(),
                                                       .gradients = table.gradients(),
                                                       .block_scales = block_scale_,
                                                       .beta1 = input.beta1.value_or(config_.beta1),
                                                       .epsilon = config_.epsilon});
  for (const params::Range& entries : rows) exchange_->adopt_momentum(entries);
}

void OneBitAdam::end_cycle(Context& context) {
  const std::vector<float> energy = host_copy(block_energy_), variance = host_copy(block_variance_);
  const std::vector<float> sketch = host_copy(mean_sketch_);
  noise_.follow(communicator_, {.energy = energy, .variance = variance, .sketch = sketch});
  ops::fill(context, block_energy_.view(), 0.0f);
  show_ratios();
}

void OneBitAdam::apply(Context& context, params::Table& table, const StepInput& input) {
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
                             .still = still_.bitmap(),
                             .ranges = ranges,
                             .learning_rate = input.learning_rate,
                             .momentum_factor = 1 / moments_.momentum_weight(config_)});
}

}  // namespace onebit::optim
