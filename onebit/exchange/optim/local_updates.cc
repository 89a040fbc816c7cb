#include "onebit/exchange/optim/local_updates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "onebit/exchange/optim/compute_copy.h"
#include "onebit/exchange/optim/saved_state.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/ops/elementwise.h"

namespace onebit::optim {
namespace {

using Kind = ZeroOneSchedule::Kind;

constexpr int64_t kSwappedElements = int64_t{1} << 18;
constexpr int64_t kFloat = sizeof(float);

}  // namespace

LocalUpdates::LocalUpdates(const ZeroOneOptions& options, const ParameterTable& table,
                           const Levels& levels)
    : levels_(levels), schedule_(options) {
  if (alone()) return;
  sum_ = Tensor::zeros(table.device(), DType::kF32, {levels.elements()});
  common_ = Tensor::zeros(table.device(), DType::kF32, sum_.shape());
  momentum_ = Tensor::zeros(table.device(), DType::kF32, sum_.shape());
  swapped_ =
      Tensor::zeros(table.device(), DType::kF32, {std::min(levels.elements(), kSwappedElements)});
}

UpdatePlan LocalUpdates::plan(const AdamRule& adam) const {
  UpdatePlan plan{.variance_memory = adam.next_variance_memory()};
  if (alone()) return plan;
  // Also where no local updates are due: a schedule that was changed may leave some behind.
  plan.updates = count_ + 1;
  switch (schedule_.next()) {
    case Kind::kDense:  // made by the warm-up
    case Kind::kOneBit:
    case Kind::kSynchronize:
      return plan;
    case Kind::kRefresh:
      plan.averages = true;
      return plan;
    case Kind::kLocal:
      plan.exchanges = false;
      return plan;
  }
  return plan;
}

void LocalUpdates::freeze(ConstView momentum) {
  if (!alone()) levels_.take_share(momentum_.view(), momentum);
}

void LocalUpdates::keep(Context& context, const SignExchange::Bucket& bucket) {
  const auto [begin, end] = bucket.range;
  ops::add(context, {.x = bucket.normalized, .y = sum_.view().rows(begin, end)});
}

void LocalUpdates::give(Context& context, const SignExchange::Bucket& bucket) {
  if (count_ == 0) return;
  const View sum = sum_.view().rows(bucket.range.begin, bucket.range.end);
  ops::add(context, {.x = sum, .y = bucket.normalized});
  ops::fill(context, sum, 0.0f);
}

void LocalUpdates::leave_common(const ParameterTable& table, double learning_rate) {
  if (count_ == 0) levels_.take_share(common_.view(), table.values());
  ++count_;
  rate_sum_ += learning_rate;
}

double LocalUpdates::return_to_common(const ParameterTable& table) {
  if (count_ > 0) levels_.put_share(table.values(), common_.view());
  count_ = 0;
  return std::exchange(rate_sum_, 0);
}

void LocalUpdates::swap_values(Context& context, const ParameterTable& table) {
  const int64_t part = swapped_.shape().elements();
  for (const auto& [range, place] : levels_.shares()) {
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
  levels_.gather(context, table.values());
  refresh_compute_copy(context, table);
}

void LocalUpdates::show_common(Context& context, const ParameterTable& table) {
  ONEBIT_INVARIANT(!shows_common_);
  shows_common_ = true;
  if (count_ > 0) swap_values(context, table);
}

void LocalUpdates::restore_own(Context& context, const ParameterTable& table) {
  ONEBIT_INVARIANT(shows_common_);
  shows_common_ = false;
  if (count_ > 0) swap_values(context, table);
}

void LocalUpdates::save(StateWriter& writer, bool compressed, int64_t owed_updates) const {
  writer.scalar(
      "zero_one",
      Json{{"local_updates", count_}, {"rate_sum", rate_sum_}, {"last_exchanged", owed_updates}});
  if (alone() || !compressed) return;
  if (count_ == 0) {
    const std::vector<float> arrived = levels_.gathered(momentum_.view());
    return writer.replicated("arrived", ConstView::of(arrived.data(), {levels_.whole_elements()}));
  }
  ONEBIT_INVARIANT(shows_common_);  // the table, saved separately, has the common values
  writer.own("arrived", momentum_.view());
  writer.own("own_values", common_.view());
  writer.own("sum", sum_.view());
}

int64_t LocalUpdates::saved_owed_updates(const StateReader& reader) {
  return reader.scalar("zero_one").at("last_exchanged").get<int64_t>();
}

void LocalUpdates::load(Context& context, const ParameterTable& table, const StateReader& reader,
                        bool compressed, int64_t updates) {
  const Json state = reader.scalar("zero_one");
  schedule_ = ZeroOneSchedule(schedule_.options(), updates);
  count_ = 0;
  rate_sum_ = 0;
  if (!alone()) ops::fill(context, sum_.view(), 0.0f);
  if (!compressed) return;
  if (reader.saved_world_size() == 1) return load_arrived(reader, "momentum");
  const auto count = state.at("local_updates").get<int64_t>();
  if (count == 0) return load_arrived(reader, "arrived");
  load_values(table, reader);
  levels_.gather(context, table.values());
  count_ = alone() ? 0 : count;
  rate_sum_ = alone() ? 0 : state.at("rate_sum").get<double>();
  refresh_compute_copy(context, table);
}

void LocalUpdates::load_arrived(const StateReader& reader, const char* name) const {
  if (alone()) return;
  std::vector<float> arrived(static_cast<size_t>(levels_.whole_elements()));
  const View whole = View::of(arrived.data(), {levels_.whole_elements()});
  reader.replicated(name, whole);
  levels_.take_share(momentum_.view(), whole);
}

void LocalUpdates::load_values(const ParameterTable& table, const StateReader& reader) const {
  const compress::Ownership before = saved_ownership(reader, levels_.whole_elements());
  const int source = levels_.ownership().source_of(levels_.world().rank());
  const auto read = [&](const char* name) {
    return before.sources() == levels_.sources()
               ? source_buffer(reader, before, name, source, levels_.shares())
               : mean_source_buffer(reader, levels_.across(), before, name, levels_.shares());
  };
  const auto view_of = [](const std::vector<float>& values) {
    return ConstView::of(values.data(), {static_cast<int64_t>(values.size())});
  };
  if (!alone()) {
    levels_.take_share(common_.view(), table.values());
    copy(momentum_.view(), view_of(read("arrived")));
    copy(sum_.view(), view_of(read("sum")));
  }
  levels_.put_share(table.values(), view_of(read("own_values")));
}

int64_t LocalUpdates::size_bytes() const {
  if (alone()) return 0;
  int64_t bytes = 0;
  for (const Tensor* tensor : {&momentum_, &sum_, &common_, &swapped_}) {
    bytes += tensor->view().size_bytes();
  }
  return bytes;
}

int64_t LocalUpdates::size_bytes_of(const ParameterTable& table, int world_size) {
  const int64_t elements = table.size_elements();
  return world_size == 1 ? 0 : kFloat * (3 * elements + std::min(elements, kSwappedElements));
}

int64_t LocalUpdates::saved_bytes_of(int64_t elements, int sources) {
  return sources == 1 ? 0 : 3 * sources * elements * kFloat;
}

int64_t LocalUpdates::saved_bytes() const {
  return saved_bytes_of(levels_.whole_elements(), alone() ? 1 : levels_.sources());
}

}  // namespace onebit::optim
