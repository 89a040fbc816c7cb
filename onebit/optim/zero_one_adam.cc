#include "onebit/optim/zero_one_adam.h"

#include <algorithm>
#include <cmath>

#include "onebit/base/json.h"
#include "onebit/ops/elementwise.h"
#include "onebit/optim/onebit_adam_memory.h"
#include "onebit/optim/saved_state.h"

namespace onebit::optim {
namespace {

using Kind = ZeroOneSchedule::Kind;

constexpr int64_t kSwappedElements = int64_t{1} << 18;

// The dense updates at the beginning of the schedule are the warm-up of 1-bit Adam.
FreezeOptions freeze_of(const ZeroOneOptions& schedule) {
  return {.step = std::min(schedule.variance_scaler, schedule.variance_freeze)};
}

OneBitAdamOptions without_schedule(const ZeroOneAdamOptions& options) {
  return {
      .adam = options.adam, .freeze = freeze_of(options.schedule), .exchange = options.exchange};
}

ZeroOneOptions ending_with(const RunFacts& run, ZeroOneOptions schedule) {
  schedule.last_update = run.total_steps;
  return schedule;
}

class ZeroOneAdamRecipe : public OptimizerRecipe {
 public:
  explicit ZeroOneAdamRecipe(const ZeroOneAdamOptions& options) : options_(options) {}

  double learning_rate() const override { return options_.adam.learning_rate; }
  std::unique_ptr<Optimizer> make(const params::Table& table, comm::Communicator& communicator,
                                  const RunFacts& run) const override {
    return std::make_unique<ZeroOneAdam>(options_, table, communicator, run);
  }
  int64_t state_bytes(const params::Table& table, int world_size,
                      const RunFacts& run) const override {
    const int64_t bytes = onebit_adam_state_bytes(table, world_size, run);
    if (world_size == 1) return bytes;
    const int64_t elements = table.size_elements();
    return bytes + static_cast<int64_t>(sizeof(float)) *
                       (2 * elements + std::min(elements, kSwappedElements));
  }
  UpdateCounts count_updates(const RunFacts& run, int64_t updates) const override {
    const ZeroOneCounts counts = count_exchanges(ending_with(run, options_.schedule), updates);
    const int64_t dense = updates - counts.one_bit - counts.nothing;
    const int64_t both = counts.dense - dense;
    return {
        .dense = dense, .compressed = counts.one_bit - both, .both = both, .local = counts.nothing};
  }
  std::string describe() const override { return optim::describe(options_.adam); }
  std::vector<std::pair<std::string, std::string>> rows(const RunFacts& run,
                                                        int world_size) const override {
    if (world_size == 1) return {{"updates", "nothing to send on one rank"}};
    const ZeroOneCounts counts =
        count_exchanges(ending_with(run, options_.schedule), run.total_steps);
    return {
        {"updates", fmt::format("of {}, {} average gradients, {} exchange one bit an element, {} "
                                "nothing",
                                run.total_steps, counts.dense, counts.one_bit, counts.nothing)}};
  }
  std::string conflict_with(const RunFacts& run) const override {
    const ZeroOneOptions& schedule = options_.schedule;
    const int64_t local = run.total_steps - schedule.variance_freeze;
    if (local <= 0) return {};
    const int64_t interval = longest_interval(schedule, run.total_steps);
    if (interval <= local) return {};
    return fmt::format(
        "makes the interval between synchronizations grow to {} updates, and only {} of the run's "
        "{} come after var_freeze_step ({}): the ranks would not exchange again before the last "
        "one; lower local_step_clipper ({}) or raise local_step_scaler ({})",
        interval, local, run.total_steps, schedule.variance_freeze, schedule.local_limit,
        schedule.local_scaler);
  }
  std::vector<std::string> warnings(const RunFacts& run) const override {
    const ZeroOneOptions& schedule = options_.schedule;
    const int64_t dense = std::min(schedule.variance_scaler, schedule.variance_freeze);
    if (run.total_steps == 0 || dense < run.total_steps) return {};
    return {fmt::format(
        "optimizer.params.var_update_scaler = {} and var_freeze_step = {} average the gradients of "
        "all {} updates: nothing will be compressed; lower one of them",
        schedule.variance_scaler, schedule.variance_freeze, run.total_steps)};
  }
  std::optional<int64_t> last_dense_update(const RunFacts& run) const override {
    return last_warmup_update(freeze_of(options_.schedule), options_.adam.beta2, run);
  }
  // Local updates are Adam's too, each of a rank's own gradients.
  const AdamOptions* followed_adam() const override { return &options_.adam; }

 private:
  ZeroOneAdamOptions options_;
};

void refresh_compute_copy(Context& context, const params::Table& table) {
  if (table.compute_type() == DType::kF32) return;
  ops::cast(context, {.from = table.values(), .to = table.compute_values()});
}

}  // namespace

ZeroOneAdam::ZeroOneAdam(const ZeroOneAdamOptions& options, const params::Table& table,
                         comm::Communicator& communicator, const RunFacts& run)
    : OneBitAdam(without_schedule(options), table, communicator, run),
      beta2_(options.adam.beta2),
      schedule_(ending_with(run, options.schedule)) {
  if (alone()) return;
  sum_ = Tensor::zeros(table.device(), DType::kF32, {levels().elements()});
  common_ = Tensor::zeros(table.device(), DType::kF32, sum_.shape());
  swapped_ =
      Tensor::zeros(table.device(), DType::kF32, {std::min(levels().elements(), kSwappedElements)});
}

// One rank exchanges nothing and has no reason to wait with its variance.
OneBitAdam::UpdatePlan ZeroOneAdam::plan() const {
  UpdatePlan plan = OneBitAdam::plan();
  if (alone()) return plan;
  switch (schedule_.next()) {
    case Kind::kDense:
    case Kind::kSynchronize:
      plan.updates = local_updates_ + 1;
      return plan;
    case Kind::kRefresh: {
      // With W the weight of the variance: after k updates it is 1 - beta2^k (1 - W), of which what
      // was there counts beta2^k W.
      const double kept = std::pow(beta2_, static_cast<double>(updates_since_average_ + 1));
      const double next_weight = rule().variance_weight() * beta2_ / plan.variance_memory;
      plan.averages = true;
      plan.variance_memory = kept * variance_weight_ / next_weight;
      return plan;
    }
    case Kind::kOneBit:
      plan.variance_memory = 1;
      return plan;
    case Kind::kLocal:
      plan.exchanges = false;
      return plan;
  }
  return plan;
}

void ZeroOneAdam::begin_step(Context& computing, params::Table& table, const StepInput& input) {
  const UpdatePlan next = plan();
  if (!alone() && next.exchanges) exchange().owe_for(next.updates);
  OneBitAdam::begin_step(computing, table, input);
}

StepReport ZeroOneAdam::step(Context& context, params::Table& table, const StepInput& input) {
  ONEBIT_INVARIANT(!shows_common_);
  const Kind kind = schedule_.next();
  const StepReport report = OneBitAdam::step(context, table, input);
  if (!report.applied) return report;
  ++updates_since_average_;
  if (kind == Kind::kDense || kind == Kind::kRefresh) {
    variance_weight_ = rule().variance_weight();
    updates_since_average_ = 0;
  }
  schedule_.advance();
  return report;
}

void ZeroOneAdam::before_sending(Context& context, const Bucket& bucket) {
  if (local_updates_ == 0) return;
  const View sum = sum_.view().rows(bucket.range.begin, bucket.range.end);
  ops::add(context, {.x = sum, .y = bucket.normalized});
  ops::fill(context, sum, 0.0f);
}

void ZeroOneAdam::keep_local(Context& context, const StepInput& input, const Bucket& bucket) {
  const auto [begin, end] = bucket.range;
  ops::add(context, {.x = bucket.normalized, .y = sum_.view().rows(begin, end)});
  ops::onebit_momentum(context, {.momentum = normalized().momentum.view(),
                                 .variance = normalized().variance.view(),
                                 .normalized = bucket.normalized,
                                 .extra = {},
                                 .begin = begin,
                                 .end = end,
                                 .beta1 = rule().beta1(input)});
}

void ZeroOneAdam::apply(Context& context, params::Table& table, const StepInput& input) {
  if (current_plan().exchanges) {
    return synchronize(context, table, input, rate_sum_ + input.learning_rate);
  }
  if (local_updates_ == 0) levels().take_share(common_.view(), table.values());
  OneBitAdam::apply(context, table, input);
  ++local_updates_;
  rate_sum_ += input.learning_rate;
}

// The exchange has taken the sums of the local updates, so their movement is made now. This
// update's is not.
void ZeroOneAdam::discard(Context& context, params::Table& table, const StepInput& input) {
  if (current_plan().exchanges && local_updates_ > 0) {
    synchronize(context, table, input, rate_sum_);
  }
}

void ZeroOneAdam::synchronize(Context& context, params::Table& table, const StepInput& input,
                              double rate_sum) {
  if (local_updates_ > 0) levels().put_share(table.values(), common_.view());
  StepInput whole = input;
  whole.learning_rate = rate_sum;
  OneBitAdam::apply(context, table, whole);
  local_updates_ = 0;
  rate_sum_ = 0;
}

void ZeroOneAdam::swap_values(Context& context, params::Table& table) {
  const int64_t part = swapped_.shape().elements();
  for (const auto& [range, place] : levels().shares()) {
    const View values = table.values().rows(range.begin, range.end);
    const View common = common_.view().rows(place, place + range.elements());
    for (int64_t begin = 0; begin < values.elements(); begin += part) {
      const int64_t end = std::min(begin + part, values.elements());
      const View staged = swapped_.view().rows(0, end - begin);
      copy(staged, values.rows(begin, end));
      copy(values.rows(begin, end), common.rows(begin, end));
      copy(common.rows(begin, end), staged);
    }
  }
  levels().gather(context, table.values());
  refresh_compute_copy(context, table);
}

void ZeroOneAdam::show_common_values(Context& context, params::Table& table) {
  ONEBIT_INVARIANT(!shows_common_);
  shows_common_ = true;
  if (local_updates_ > 0) swap_values(context, table);
}

void ZeroOneAdam::restore_own_values(Context& context, params::Table& table) {
  ONEBIT_INVARIANT(shows_common_);
  shows_common_ = false;
  if (local_updates_ > 0) swap_values(context, table);
}

void ZeroOneAdam::save(params::StateWriter& writer) const {
  OneBitAdam::save(writer);
  writer.scalar("zero_one", Json{{"schedule", schedule_.save()},
                                 {"variance_weight", variance_weight_},
                                 {"updates_since_average", updates_since_average_},
                                 {"local_updates", local_updates_},
                                 {"rate_sum", rate_sum_},
                                 {"last_exchanged", exchange().owed_updates()}});
  if (alone() || phase() != Phase::kCompressed) return;
  if (local_updates_ == 0) {
    const std::vector<float> arrived = levels().gathered(normalized().momentum.view());
    return writer.replicated("arrived", ConstView::of(arrived.data(), {levels().whole_elements()}));
  }
  ONEBIT_INVARIANT(shows_common_);  // the table, saved beside this, holds the common values
  writer.own("arrived", normalized().momentum.view());
  writer.own("own_values", common_.view());
  writer.own("sum", sum_.view());
}

void ZeroOneAdam::load(Context& context, params::Table& table, const params::StateReader& reader) {
  check_state_name(reader, state_name());
  const Json state = reader.scalar("zero_one");
  exchange().set_owed_updates(state.at("last_exchanged").get<int64_t>());
  OneBitAdam::load(context, table, reader);
  schedule_.load(state.at("schedule"));
  variance_weight_ = state.at("variance_weight").get<double>();
  updates_since_average_ = state.at("updates_since_average").get<int64_t>();
  local_updates_ = 0;
  rate_sum_ = 0;
  if (!alone()) ops::fill(context, sum_.view(), 0.0f);
  if (phase() != Phase::kCompressed || reader.saved_world_size() == 1) return;
  const auto local_updates = state.at("local_updates").get<int64_t>();
  if (local_updates == 0) {
    if (alone()) return;
    std::vector<float> arrived(static_cast<size_t>(levels().whole_elements()));
    const View whole = View::of(arrived.data(), {levels().whole_elements()});
    reader.replicated("arrived", whole);
    levels().take_share(normalized().momentum.view(), whole);
    return;
  }
  load_local_updates(context, table, reader);
  local_updates_ = alone() ? 0 : local_updates;
  rate_sum_ = alone() ? 0 : state.at("rate_sum").get<double>();
  refresh_compute_copy(context, table);
}

// On another number of sources all continue from the mean of their values.
void ZeroOneAdam::load_local_updates(Context& context, params::Table& table,
                                     const params::StateReader& reader) {
  const compress::Ownership before = saved_ownership(reader, levels().whole_elements());
  const int source = levels().ownership().source_of(communicator().rank());
  const auto read = [&](const char* name) {
    return before.sources() == levels().sources()
               ? source_buffer(reader, before, name, source, levels().shares())
               : mean_source_buffer(reader, levels().across(), before, name, levels().shares());
  };
  const auto view_of = [](const std::vector<float>& values) {
    return ConstView::of(values.data(), {static_cast<int64_t>(values.size())});
  };
  if (!alone()) {
    levels().take_share(common_.view(), table.values());
    copy(normalized().momentum.view(), view_of(read("arrived")));
    copy(sum_.view(), view_of(read("sum")));
  }
  levels().put_share(table.values(), view_of(read("own_values")));
  levels().gather(context, table.values());
}

int64_t ZeroOneAdam::saved_bytes(Phase phase) const {
  const int64_t bytes = OneBitAdam::saved_bytes(phase);
  if (phase != Phase::kCompressed || alone()) return bytes;
  const int64_t whole = levels().whole_elements() * static_cast<int64_t>(sizeof(float));
  return bytes + 3 * levels().sources() * whole;
}

int64_t ZeroOneAdam::state_bytes() const {
  return OneBitAdam::state_bytes() + sum_.view().size_bytes() + common_.view().size_bytes() +
         swapped_.view().size_bytes();
}

std::shared_ptr<const OptimizerRecipe> zero_one_adam_recipe(const ZeroOneAdamOptions& options) {
  return std::make_shared<ZeroOneAdamRecipe>(options);
}

std::shared_ptr<const OptimizerRecipe> read_zero_one_adam(Keys& params) {
  ZeroOneAdamOptions options;
  ZeroOneOptions& schedule = options.schedule;
  options.adam = read_moment_options(params);
  params.integer("var_freeze_step", schedule.variance_freeze, at_least(1),
                 "updates after which gradients are no longer averaged, and local updates begin");
  params.integer("var_update_scaler", schedule.variance_scaler, at_least(1),
                 "averages of gradients after which the interval between them doubles");
  params.integer("local_step_scaler", schedule.local_scaler, at_least(1),
                 "updates after which the interval between synchronizations doubles");
  params.integer("local_step_clipper", schedule.local_limit, at_least(1),
                 "longest interval between synchronizations, in updates");
  options.exchange = read_exchange_options(params, options.adam.beta2);
  return zero_one_adam_recipe(options);
}

}  // namespace onebit::optim
