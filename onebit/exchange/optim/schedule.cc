#include "onebit/exchange/optim/schedule.h"

#include <algorithm>
#include <vector>

namespace onebit::optim {

namespace {

// A schedule that begins later, as for a second phase with its own warm-up.
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

int64_t ScheduleLength::of(int64_t rest) const {
  const int64_t total = given.value_or(rest);
  require(
      total > 0,
      "{} is missing, and run.steps does not give the length of the run either: set one of them",
      place);
  return total;
}

ScheduleLength read_length(const ScheduleInput& input) {
  int64_t total = std::max<int64_t>(input.rest.value_or(1), 1);
  input.params.integer("total_num_steps", total, at_least(1),
                       {"updates in the whole schedule", "the updates of the run"});
  const bool is_given = input.params.has("total_num_steps");
  input.ends_with_run = !is_given;
  return {.given = is_given ? std::optional(total) : std::nullopt,
          .place = input.params.place("total_num_steps")};
}

ScheduleOptions read_schedule(Keys section, double base_rate, std::optional<int64_t> updates) {
  std::vector<ScheduleEntry> entries = deepspeed_schedules();
  for (const ScheduleEntry& entry : bert_schedules()) entries.push_back(entry);
  Kinds kinds;
  for (const ScheduleEntry& entry : entries) kinds.names.emplace_back(entry.name);
  ScheduleOptions options;
  options.make = [base_rate](int64_t, std::vector<std::string>&) {
    return constant_schedule(base_rate);
  };
  section.kinds(
      kinds, "the schedule of the learning rate. Without one the rate is constant",
      [&](size_t kind, Keys& params) {
        options.type = entries[kind].name;
        params.integer("start_step", options.start, at_least(0),
                       "updates of the run before the schedule begins");
        std::optional<int64_t> rest;
        if (updates) rest = options.rest_of(*updates);
        options.make = entries[kind].read({params, base_rate, rest, options.ends_with_run});
      });
  if (options.start == 0) return options;
  options.make = [inner = options.make, start = options.start](
                     int64_t all, std::vector<std::string>& warnings) -> std::unique_ptr<Schedule> {
    return std::make_unique<ShiftedSchedule>(inner(std::max<int64_t>(all - start, 0), warnings),
                                             start);
  };
  return options;
}

}  // namespace onebit::optim
