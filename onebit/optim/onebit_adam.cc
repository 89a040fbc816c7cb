#include "onebit/optim/onebit_adam.h"

#include <cmath>
#include <span>

#include "onebit/base/clock.h"
#include "onebit/base/json.h"
#include "onebit/base/log.h"
#include "onebit/comm/chunked.h"
#include "onebit/compress/bucket_size.h"
#include "onebit/ops/elementwise.h"
#include "onebit/ops/onebit_update.h"
#include "onebit/optim/onebit_adam_memory.h"
#include "onebit/optim/saved_state.h"

namespace onebit::optim {
namespace {

// Keys of other arithmetics than the one that there is.
void refuse_arithmetics(Keys& params) {
  for (const char* key : {"coordinates", "variance", "scale"}) {
    params.refused(key,
                   "1-bit Adam has one arithmetic since what travels is the gradient "
                   "(docs/compression.md)");
  }
  // Recipes that earlier runs have written hold "none".
  std::string parity;
  params.word("parity", parity, {"none"},
              "DeepSpeed's arithmetic is only there to compare with, in tests/deepspeed");
}

class OneBitAdamRecipe : public OptimizerRecipe {
 public:
  explicit OneBitAdamRecipe(const OneBitAdamOptions& options) : options_(options) {}

  double learning_rate() const override { return options_.adam.learning_rate; }
  std::unique_ptr<Optimizer> make(const params::Table& table, comm::Communicator& communicator,
                                  const RunFacts& run) const override {
    return std::make_unique<OneBitAdam>(options_, table, communicator, run);
  }
  int64_t state_bytes(const params::Table& table, int world_size,
                      const RunFacts& run) const override {
    return onebit_adam_state_bytes(table, world_size, run);
  }
  std::string describe() const override { return optim::describe(options_.adam); }
  std::vector<std::pair<std::string, std::string>> rows(const RunFacts& run,
                                                        int world_size) const override {
    return compressed_phase_rows(options_.freeze, run, world_size);
  }
  std::optional<int64_t> last_dense_update(const RunFacts& run) const override {
    return last_warmup_update(options_.freeze, run);
  }
  const AdamOptions* followed_adam() const override { return &options_.adam; }
  TransportRequest transport_request() const override { return options_.exchange.transport; }

 private:
  OneBitAdamOptions options_;
};

}  // namespace

std::shared_ptr<const OptimizerRecipe> onebit_adam_recipe(const OneBitAdamOptions& options) {
  return std::make_shared<OneBitAdamRecipe>(options);
}

std::shared_ptr<const OptimizerRecipe> read_onebit_adam(Keys& params) {
  OneBitAdamOptions options;
  options.adam = read_adam_options(params);
  refuse_arithmetics(params);
  options.freeze = read_freeze_options(params);
  options.exchange = read_exchange_options(params);
  return onebit_adam_recipe(options);
}

OneBitAdam::OneBitAdam(const OneBitAdamOptions& options, const params::Table& table,
                       comm::Communicator& communicator, const RunFacts& run)
    : options_(options),
      communicator_(communicator),
      buckets_(compress::sized_buckets(table.size_elements(), communicator.world_size(),
                                       run.bucket_bytes)),
      rule_(options.adam, table),
      state_(Moments::zeros(table)),
      freeze_rule_(options.freeze, options.adam.beta2, run),
      still_(table, options.exchange.moving_rows),
      level_(table, communicator),
      agreement_(buckets_, table.device()),
      exchange_(communicator, buckets_, still_.bitmap(),
                std::get<Moments>(state_).momentum.view()) {}

Phase OneBitAdam::phase() const {
  return std::holds_alternative<Moments>(state_) ? Phase::kWarmup : Phase::kCompressed;
}

GradientNeed OneBitAdam::gradient_need() const {
  const bool averages = phase() == Phase::kWarmup || plan().averages;
  return averages ? GradientNeed::kAveragedOverRanks : GradientNeed::kLocalOnly;
}

bool OneBitAdam::observes_local_gradients() const {
  return phase() == Phase::kWarmup && freeze_rule_.observes(updates_ + 1);
}

std::optional<comm::Buckets> OneBitAdam::limited_buckets() const {
  if (alone()) return std::nullopt;
  return buckets_;
}

void OneBitAdam::skip_step() {
  ONEBIT_INVARIANT(!begun_);
}

StepReport OneBitAdam::step(Context& context, params::Table& table, const StepInput& input) {
  return phase() == Phase::kWarmup ? warmup_step(context, table, input)
                                   : compressed_step(context, table, input);
}

StepReport OneBitAdam::warmup_step(Context& context, params::Table& table, const StepInput& input) {
  StepReport report{.phase = Phase::kWarmup};
  const Stopwatch watch;
  const Moments& moments = std::get<Moments>(state_);
  dense_update(context, table, moments, input);
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

void OneBitAdam::dense_update(Context& context, params::Table& table, const Moments& moments,
                              const StepInput& input) {
  rule_.step(context, table, moments, input);
}

void OneBitAdam::freeze(Context& context, params::Table& table) {
  state_ = in_memory_of(std::get<Moments>(std::move(state_)));
  const View momentum = normalized().momentum.view(), variance = normalized().variance.view();
  ops::onebit_freeze(context, {.momentum = momentum,
                               .variance = variance,
                               .still = still_.bitmap(),
                               .epsilon = options_.adam.epsilon,
                               .variance_factor = 1 / rule_.variance_weight()});
  still_.hold(momentum, variance);
  still_.refresh();
  exchange_.adopt_momentum({0, table.size_elements()});
  if (communicator_.rank() == 0) {
    log_info(
        "update {}: gradients are compressed from here on; {} of {} elements have had none and "
        "stay still",
        updates_, still_.count(), table.size_elements());
  }
}

void OneBitAdam::begin_step(Context& computing, params::Table& table, const StepInput& input) {
  ONEBIT_INVARIANT(phase() == Phase::kCompressed && !begun_);
  begun_ = true;
  plan_ = plan();
  if (!plan_.exchanges) return;
  exchange_.begin(
      computing, compress::momentum_step(rule_.beta1(input), plan_.updates),
      [this, &table, input](Context& context, const Bucket& bucket) {
        normalize(context, table, input, bucket);
        before_sending(context, bucket);
      },
      [this, input](Context& context, const Bucket& bucket) { receive(context, input, bucket); });
}

void OneBitAdam::gradients_ready(params::Range range) {
  ONEBIT_INVARIANT(begun_);
  if (plan_.exchanges) exchange_.ready(range);
}

void OneBitAdam::normalize(Context& context, const params::Table& table, const StepInput& input,
                           const Bucket& bucket) {
  const bool decoupled = options_.adam.decoupled_decay;
  ops::OnebitNormalize args{
      .gradient = table.gradients(),
      .value = table.values(),
      .ranges = decoupled ? std::span<const ops::UpdateRange>() : rule_.ranges(),
      .variance = normalized().variance.view(),
      .normalized = bucket.normalized,
      .extra = bucket.extra,
      .begin = bucket.range.begin,
      .end = bucket.range.end,
      .gradient_scale = agreement_.scale(context, table.gradients(), input, bucket.index),
      .epsilon = options_.adam.epsilon};
  if (plan_.averages) {
    args.alone = true;
    args.beta2 = plan_.variance_memory;
    ops::fill(context, bucket.extra, 0.0f);
  } else {
    level_.prepare(args, plan_.variance_memory, plan_.exchanges);
  }
  agreement_.prepare(args);
  ops::onebit_normalize(context, args);
}

void OneBitAdam::update_locally(Context& context, const params::Table& table,
                                const StepInput& input) {
  exchange_.visit(context, [&](Context& computing, const Bucket& bucket) {
    normalize(computing, table, input, bucket);
    keep_local(computing, input, bucket);
  });
}

void OneBitAdam::receive(Context& context, const StepInput& input, const Bucket& bucket) {
  if (plan_.averages) return;
  ops::OnebitMomentum args{.momentum = normalized().momentum.view(),
                           .variance = normalized().variance.view(),
                           .normalized = alone() ? ConstView(bucket.normalized) : ConstView(),
                           .extra = alone() ? ConstView() : ConstView(bucket.extra),
                           .begin = bucket.range.begin,
                           .end = bucket.range.end,
                           .beta1 = rule_.beta1(input)};
  level_.prepare(args, plan_.variance_memory);
  ops::onebit_momentum(context, args);
  level_.receive(context, bucket.extra, bucket.range.begin);
}

StepReport OneBitAdam::compressed_step(Context& context, params::Table& table,
                                       const StepInput& input) {
  if (!begun_) begin_step(context, table, input);
  begun_ = false;
  StepReport report{.phase = Phase::kCompressed};
  const Stopwatch watch = plan_.exchanges ? finish_exchange(context, report) : Stopwatch();
  if (!plan_.exchanges) update_locally(context, table, input);
  rule_.advance(input);

  std::vector<uint8_t> touched = still_.touched_rows(table.gradients(), agreement_.read_flags());
  GradientAgreement::Result agreed = agreement_.agree(communicator_, input, !touched.empty());
  report.applied = agreed.finite;
  report.local_gradient_square = agreed.square;
  report.bucket_squares = std::move(agreed.bucket_squares);
  if (agreed.limited_square < agreed.square) {
    report.clip_coefficient = std::sqrt(agreed.limited_square / agreed.square);
  }
  end_update(context);
  report.norm_ratio = level_.norm_ratio();
  if (agreed.finite) {
    const int64_t still_before = still_.count();
    if (agreed.touched) wake(table, input, std::move(touched));
    report.woken_elements = still_before - still_.count();
    apply(context, table, input);
    ++updates_;
  } else {
    discard(context, table, input);
  }
  report.still_elements = still_.count();
  report.update_seconds = watch.seconds();
  return report;
}

Stopwatch OneBitAdam::finish_exchange(Context& context, StepReport& report) {
  exchange_.finish(context);
  const Stopwatch watch;
  const compress::ResidualNorms norms = exchange_.norms();
  report.sent_norm = norms.values;
  report.residual_norm = norms.worker_residual;
  report.compress_seconds = exchange_.compress_seconds();
  report.wait_seconds = exchange_.wait_seconds();
  return watch;
}

void OneBitAdam::end_update(Context& context) {
  if (plan_.averages) return;
  if (plan_.exchanges) {
    level_.end_exchange(context);
  } else {
    level_.end_update();
  }
}

void OneBitAdam::wake(const params::Table& table, const StepInput& input,
                      std::vector<uint8_t> touched) {
  const std::vector<params::Range> rows = still_.wake(communicator_, std::move(touched),
                                                      {.momentum = normalized().momentum.view(),
                                                       .variance = normalized().variance.view(),
                                                       .gradients = table.gradients(),
                                                       .block_scales = agreement_.block_scales(),
                                                       .beta1 = rule_.beta1(input),
                                                       .epsilon = options_.adam.epsilon});
  for (const params::Range& entries : rows) exchange_.adopt_momentum(entries);
}

void OneBitAdam::apply(Context& context, params::Table& table, const StepInput& input) {
  const ops::UpdateRange no_decay{0, table.size_elements(), 0};
  const bool decoupled = options_.adam.decoupled_decay;
  const bool copies = table.compute_type() != DType::kF32;
  ops::onebit_step(context, {.value = table.values(),
                             .compute_value = copies ? table.compute_values() : View(),
                             .momentum = normalized().momentum.view(),
                             .still = still_.bitmap(),
                             .ranges = decoupled ? rule_.ranges() : std::span(&no_decay, 1),
                             .learning_rate = input.learning_rate,
                             .momentum_factor = 1 / rule_.momentum_weight()});
}

void OneBitAdam::save(params::StateWriter& writer) const {
  ONEBIT_INVARIANT(!begun_);
  save_state_name(writer, state_name());
  writer.scalar("phase", std::string(name_of(phase())));
  writer.scalar("updates", updates_);
  writer.scalar("travels", "gradient");
  writer.scalar("exp_avg_mask", Json(options_.exchange.moving_rows));
  freeze_rule_.save(writer);
  rule_.save(writer);
  if (phase() == Phase::kWarmup) return std::get<Moments>(state_).save(writer);
  normalized().save(writer);
  exchange_.save(writer);
  level_.save(writer);
}

void OneBitAdam::load(Context&, params::Table&, const params::StateReader& reader) {
  check_state_name(reader, state_name());
  const bool compressed = reader.scalar("phase") == std::string(name_of(Phase::kCompressed));
  require(
      !compressed || reader.scalar("exp_avg_mask") == Json(options_.exchange.moving_rows),
      "optimizer.params.exp_avg_mask is {}, but the checkpoint was frozen with {}: which rows are "
      "held cannot change after the freeze",
      Json(options_.exchange.moving_rows).dump(), reader.scalar("exp_avg_mask").dump());
  require(
      !compressed || !reader.scalar("travels").is_null(),
      "the checkpoint was made in the compressed phase of an older onebit, whose 1-bit Adam "
      "exchanged momentum: continue from a checkpoint of its warm-up (--resume TAG), or start a "
      "new run from its model (--initialize-from)");
  updates_ = reader.scalar("updates").get<int64_t>();
  freeze_rule_.load(reader);
  rule_.load(reader);
  level_.restart();
  begun_ = false;
  if (compressed) {
    load_compressed(reader);
    if (freeze_rule_.is_before(updates_)) thaw();
    return;
  }
  if (phase() == Phase::kCompressed) {
    state_ = in_memory_of(std::get<NormalizedMoments>(std::move(state_)));
  }
  std::get<Moments>(state_).load(reader);
}

void OneBitAdam::load_compressed(const params::StateReader& reader) {
  if (phase() == Phase::kWarmup) state_ = in_memory_of(std::get<Moments>(std::move(state_)));
  std::get<NormalizedMoments>(state_).load(reader, communicator_);
  still_.restore(normalized().variance.view());
  exchange_.load(reader, options_.adam.beta1);
  level_.load(reader);
}

void OneBitAdam::thaw() {
  std::vector<float> momenta = exchange_.collect_momentum(options_.adam.beta1);
  std::vector<float> variances(momenta.size());
  const View variance = View::of(variances.data(), {static_cast<int64_t>(variances.size())});
  copy(variance, normalized().variance.view());
  comm::sum_in_chunks(communicator_, variances);
  for (size_t i = 0; i < momenta.size(); ++i) {
    const double mean = double{variances[i]} / communicator_.world_size();
    momenta[i] = static_cast<float>(momenta[i] * (std::sqrt(mean) + options_.adam.epsilon));
    variances[i] = static_cast<float>(mean * rule_.variance_weight());
  }
  state_ = in_memory_of(std::get<NormalizedMoments>(std::move(state_)));
  const Moments& moments = std::get<Moments>(state_);
  copy(moments.momentum.view(), ConstView::of(momenta.data(), variance.shape()));
  copy(moments.variance.view(), variance);
  level_.restart();
  if (communicator_.rank() == 0) {
    log_info("optimizer.params.freeze_step lies beyond update {}: the warm-up continues", updates_);
  }
}

int64_t OneBitAdam::saved_bytes(Phase phase) const {
  const int64_t buffer_bytes = buckets_.elements() * static_cast<int64_t>(sizeof(float));
  if (phase != Phase::kCompressed) return 2 * buffer_bytes;  // both moments
  const int64_t own_bytes = buffer_bytes + level_.saved_bytes();
  return communicator_.world_size() * own_bytes + exchange_.saved_bytes();
}

int64_t OneBitAdam::state_bytes() const {
  const int64_t moments_bytes =
      std::visit([](const auto& moments) { return moments.size_bytes(); }, state_);
  return moments_bytes + still_.bitmap().size_bytes() + level_.size_bytes() +
         agreement_.size_bytes() + exchange_.size_bytes();
}

int64_t OneBitAdam::wire_bytes_sent() const {
  return exchange_.wire_bytes_sent();
}

}  // namespace onebit::optim
