#include "onebit/optim/schedule.h"

#include <cmath>
#include <vector>

#include "onebit/optim/schedule_kinds.h"

namespace onebit::optim {
namespace {

// Another schedule that begins later, as for a second phase that warms its rate up again.
class ShiftedSchedule : public Schedule {
 public:
  ShiftedSchedule(std::unique_ptr<Schedule> inner, int64_t start)
      : inner_(std::move(inner)), start_(start) {}

  Rate at(int64_t update) const override {
    return inner_->at(std::max<int64_t>(update - start_, 1));
  }
  int64_t warmup_updates() const override {
    const int64_t inner = inner_->warmup_updates();
    return inner == 0 ? 0 : inner + std::min(start_, INT64_MAX - inner);
  }

 private:
  std::unique_ptr<Schedule> inner_;
  int64_t start_;
};

std::unique_ptr<Schedule> constant_schedule(double rate) {
  return std::make_unique<FormulaSchedule>(0, [rate](int64_t) { return Rate{rate, std::nullopt}; });
}

}  // namespace

int64_t total_steps_of(const ScheduleInput& input) {
  const int64_t total = input.params.integer("total_num_steps", input.total_updates);
  require(total > 0, "{} is missing and the run has no length: give it, or run.steps",
          input.params.place("total_num_steps"));
  return total;
}

double rate_of(JsonReader& params, const std::string& key, double fallback) {
  const Json& value = params.raw(key);
  const bool is_list = value.is_array() && !value.empty();
  for (const Json& one : is_list ? value : Json::array()) {
    require(one.is_number() && one == value[0],
            "{}: all parameters share one rate here, so the list must repeat one number, got {}",
            params.place(key), value.dump());
  }
  const double rate = is_list ? value[0].get<double>() : params.number(key, fallback);
  require(rate >= 0 && std::isfinite(rate), "{} is {}; a rate is not negative", params.place(key),
          rate);
  return rate;
}

std::unique_ptr<Schedule> make_schedule(JsonReader reader, double base_rate,
                                        int64_t total_updates) {
  if (!reader.has("type")) {
    reader.finish();
    return constant_schedule(base_rate);
  }
  auto makers = deepspeed_schedules();
  makers.merge(bert_schedules());
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers) names.push_back(name);
  const std::string type = reader.choice("type", "", names);
  JsonReader params = reader.object("params");
  reader.finish();
  const int64_t start = params.integer("start_step", 0);
  require(start >= 0, "{} is {}; it counts completed updates", params.place("start_step"), start);
  std::unique_ptr<Schedule> schedule =
      makers.at(type)({params, base_rate, total_updates > start ? total_updates - start : 0});
  params.finish();
  if (start == 0) return schedule;
  return std::make_unique<ShiftedSchedule>(std::move(schedule), start);
}

}  // namespace onebit::optim
