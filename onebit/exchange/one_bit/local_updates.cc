#include "onebit/exchange/one_bit/local_updates.h"

#include <algorithm>
#include <vector>

#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/ops/elementwise.h"

namespace onebit::optim {

namespace {

int64_t doubled(int64_t interval, int64_t limit) {
  return interval <= limit / 2 ? 2 * interval : limit;
}

// The number of multiples of `interval` among after + 1 to last.
int64_t multiples(int64_t interval, int64_t after, int64_t last) {
  return last / interval - after / interval;
}

}  // namespace

ZeroOneSchedule::ZeroOneSchedule(const ZeroOneOptions& options, int64_t updates)
    : options_(options) {
  while (updates_ < updates) advance();
}

ZeroOneSchedule::Kind ZeroOneSchedule::next() const {
  const int64_t update = updates_ + 1;
  if (update <= options_.variance_freeze) {
    if (variance_interval_ == 1) return Kind::kDense;
    return update % variance_interval_ == 0 ? Kind::kRefresh : Kind::kOneBit;
  }
  const bool exchanges = update % local_interval_ == 0 || update == options_.last_update;
  return exchanges ? Kind::kSynchronize : Kind::kLocal;
}

void ZeroOneSchedule::advance() {
  const Kind kind = next();
  ++updates_;
  if (kind == Kind::kDense || kind == Kind::kRefresh) {
    if (++dense_in_interval_ < options_.variance_scaler) return;
    dense_in_interval_ = 0;
    variance_interval_ *= 2;
  } else if (kind == Kind::kSynchronize || kind == Kind::kLocal) {
    if (++updates_in_interval_ < options_.local_scaler) return;
    updates_in_interval_ = 0;
    local_interval_ = doubled(local_interval_, options_.local_limit);
  }
}

ZeroOneCounts count_exchanges(const ZeroOneOptions& options, int64_t updates) {
  ZeroOneCounts counts;
  const int64_t freeze = std::min(updates, options.variance_freeze);
  int64_t done = 0;
  for (int64_t interval = 1; done < freeze; interval = doubled(interval, freeze)) {
    const int64_t left = multiples(interval, done, freeze);
    const bool ends_here = options.variance_scaler >= left;
    const int64_t end = ends_here ? freeze : (done / interval + options.variance_scaler) * interval;
    counts.dense += multiples(interval, done, end);
    if (interval > 1) counts.one_bit += end - done;
    done = end;
  }
  for (int64_t interval = 1; done < updates; interval = doubled(interval, options.local_limit)) {
    const bool is_longest = interval == options.local_limit;
    const int64_t end =
        is_longest || options.local_scaler > updates - done ? updates : done + options.local_scaler;
    int64_t synchronized = multiples(interval, done, end);
    const int64_t last = options.last_update;
    if (last > done && last <= end && last % interval != 0) ++synchronized;
    counts.one_bit += synchronized;
    counts.nothing += end - done - synchronized;
    done = end;
  }
  return counts;
}

int64_t longest_interval(const ZeroOneOptions& options, int64_t updates) {
  const int64_t before_last = updates - options.variance_freeze - 1;
  int64_t interval = 1;
  for (int64_t times = before_last / options.local_scaler;
       times > 0 && interval < options.local_limit; --times) {
    interval = doubled(interval, options.local_limit);
  }
  return interval;
}

namespace {

using Kind = ZeroOneSchedule::Kind;

constexpr int64_t kSwappedElements = int64_t{1} << 18;

constexpr StateBuffer own_of_share(std::string_view name) {
  return {.name = name,
          .extent = Extent::kShare,
          .kept = Kept::kOwn,
          .on_other_ranks = OnOtherRanks::kMean};
}
constexpr StateBuffer kOwnValues = own_of_share("own_values"), kOwnSum = own_of_share("sum");

}  // namespace

// In the order of Buffer, then what is saved after an update that exchanged.
StateLayout LocalUpdates::layout(int sources, int64_t share_elements) {
  if (sources == 1) return {};
  return {own_of_share("arrived"),
          kOwnValues,
          kOwnSum,
          {.name = "swapped",
           .extent = Extent::kNumber,
           .numbers = std::min(share_elements, kSwappedElements)},
          {.name = "arrived", .kept = Kept::kReplicated, .instead = true}};
}

LocalUpdates::LocalUpdates(const ZeroOneOptions& options, const ParameterTable& table,
                           const Topology& topology)
    : topology_(topology),
      schedule_(options),
      rate_sums_(static_cast<size_t>(table.group_count())),
      state_(layout(topology.sources(), topology.elements()), topology, table.device()) {}

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
  if (!alone()) topology_.take_share(state_[kMomentum], momentum);
}

void LocalUpdates::keep(Context& context, Range range, ConstView normalized) {
  ops::add(context, {.x = normalized, .y = state_[kSum].rows(range.begin, range.end)});
}

void LocalUpdates::give(Context& context, Range range, View normalized) {
  if (count_ == 0) return;
  const View sum = state_[kSum].rows(range.begin, range.end);
  ops::add(context, {.x = sum, .y = normalized});
  ops::fill(context, sum, 0.0f);
}

void LocalUpdates::add_rates(const Rates& rates) {
  for (size_t group = 0; group < rate_sums_.size(); ++group) {
    const double factor = rates.groups.empty() ? 1 : rates.groups[group].rate;
    rate_sums_[group] += rates.learning_rate * factor;
  }
}

void LocalUpdates::leave_common(const ParameterTable& table, const Rates& rates) {
  if (count_ == 0) topology_.take_share(state_[kCommon], table.values());
  ++count_;
  add_rates(rates);
}

// Each group has moved by the sum of its own rates: their quotients need not be the quotients of
// this update.
Rates LocalUpdates::return_to_common(const ParameterTable& table, const Rates& rates) {
  if (count_ > 0) topology_.put_share(table.values(), state_[kCommon]);
  count_ = 0;
  add_rates(rates);
  Rates gathered{.learning_rate = *std::max_element(rate_sums_.begin(), rate_sums_.end()),
                 .groups = rates.groups};
  for (size_t group = 0; group < gathered.groups.size(); ++group) {
    gathered.groups[group].rate =
        gathered.learning_rate > 0 ? rate_sums_[group] / gathered.learning_rate : 0;
  }
  std::fill(rate_sums_.begin(), rate_sums_.end(), 0.0);
  return gathered;
}

void LocalUpdates::swap_values(Context& context, const ParameterTable& table) {
  const int64_t part = state_[kSwapped].elements();
  for (const auto& [range, place] : topology_.shares()) {
    const View values = table.values().rows(range.begin, range.end);
    const View common = state_[kCommon].rows(place, place + range.elements());
    for (int64_t begin = 0; begin < values.elements(); begin += part) {
      const int64_t end = std::min(begin + part, values.elements());
      const View staged = state_[kSwapped].rows(0, end - begin);
      copy(staged, values.rows(begin, end));
      copy(values.rows(begin, end), common.rows(begin, end));
      copy(common.rows(begin, end), staged);
    }
  }
  topology_.gather(context, table.values());
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
  const Json rate_sum = rate_sums_.size() == 1 ? Json(rate_sums_[0]) : Json(rate_sums_);
  writer.scalar(
      "zero_one",
      Json{{"local_updates", count_}, {"rate_sum", rate_sum}, {"last_exchanged", owed_updates}});
  if (alone() || !compressed) return;
  if (count_ == 0) {
    const std::vector<float> arrived = topology_.gathered(state_[kMomentum]);
    return writer.replicated("arrived",
                             ConstView::of(arrived.data(), {topology_.whole_elements()}));
  }
  ONEBIT_INVARIANT(shows_common_);  // the table, saved separately, has the common values
  state_.save(writer);
}

int64_t LocalUpdates::saved_owed_updates(const StateReader& reader) {
  return reader.scalar("zero_one").at("last_exchanged").get<int64_t>();
}

void LocalUpdates::load(Context& context, const ParameterTable& table, const StateReader& reader,
                        bool compressed, int64_t updates) {
  const Json state = reader.scalar("zero_one");
  schedule_ = ZeroOneSchedule(schedule_.options(), updates);
  count_ = 0;
  std::fill(rate_sums_.begin(), rate_sums_.end(), 0.0);
  if (!alone()) ops::fill(context, state_[kSum], 0.0f);
  if (!compressed) return;
  if (reader.saved_world_size() == 1) return load_arrived(reader, "momentum");
  const auto count = state.at("local_updates").get<int64_t>();
  if (count == 0) return load_arrived(reader, "arrived");
  load_values(table, reader);
  topology_.gather(context, table.values());
  count_ = alone() ? 0 : count;
  if (!alone()) load_rates(state.at("rate_sum"));
  refresh_compute_copy(context, table);
}

void LocalUpdates::load_sums(const StateReader& reader, double beta1, View momentum) const {
  if (reader.saved_world_size() == 1) return;
  const auto count = reader.scalar("zero_one").at("local_updates").get<int64_t>();
  if (count == 0) return;
  std::vector<float> sums(static_cast<size_t>(momentum.elements())), moved(sums.size());
  load_buffer(reader, kOwnSum, topology_, View::of(sums.data(), momentum.shape()));
  const View host = View::of(moved.data(), momentum.shape());
  copy(host, momentum);
  const compress::MomentumStep step = compress::momentum_step(beta1, count);
  for (size_t i = 0; i < moved.size(); ++i) {
    moved[i] = static_cast<float>(step.beta * moved[i] + step.weight * sums[i]);
  }
  copy(momentum, host);
}

void LocalUpdates::load_rates(const Json& rate_sum) {
  const auto saved = rate_sum.is_array() ? rate_sum.get<std::vector<double>>()
                                         : std::vector<double>{rate_sum.get<double>()};
  require(saved.size() == rate_sums_.size(),
          "the state has the learning rates of {} groups of parameters, and there are {}",
          saved.size(), rate_sums_.size());
  rate_sums_ = saved;
}

void LocalUpdates::load_arrived(const StateReader& reader, const char* name) const {
  if (alone()) return;
  std::vector<float> arrived(static_cast<size_t>(topology_.whole_elements()));
  const View whole = View::of(arrived.data(), {topology_.whole_elements()});
  reader.replicated(name, whole);
  topology_.take_share(state_[kMomentum], whole);
}

void LocalUpdates::load_values(const ParameterTable& table, const StateReader& reader) const {
  std::vector<float> own_values(static_cast<size_t>(topology_.elements()));
  const View own = View::of(own_values.data(), {topology_.elements()});
  if (alone()) {
    load_buffer(reader, kOwnValues, topology_, own);
  } else {
    state_.load(reader, topology_);
    copy(own, state_[kCommon]);
    topology_.take_share(state_[kCommon], table.values());
  }
  topology_.put_share(table.values(), own);
}

}  // namespace onebit::optim
