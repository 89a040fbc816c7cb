#include "onebit/exchange/optim/schedule.h"

#include <algorithm>
#include <vector>

#include "onebit/exchange/optim/schedule_kinds.h"

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

int64_t total_steps_of(const ScheduleInput& input) {
  // A schedule that is read before the length of the run is known is read again.
  int64_t total = input.total_updates.value_or(1);
  input.params.integer("total_num_steps", total, at_least(1),
                       {"updates in the whole schedule", "the updates of the run"});
  input.params.require(
      total > 0, "total_num_steps",
      "is missing, and run.steps does not give the length of the run either: set one of them");
  return std::max<int64_t>(total, 1);
}

std::unique_ptr<Schedule> make_schedule(Keys section, double base_rate,
                                        std::optional<int64_t> total_updates) {
  std::vector<ScheduleEntry> entries = deepspeed_schedules();
  for (const ScheduleEntry& entry : bert_schedules()) entries.push_back(entry);
  Kinds kinds;
  for (const ScheduleEntry& entry : entries) kinds.names.emplace_back(entry.name);
  std::unique_ptr<Schedule> schedule = constant_schedule(base_rate);
  section.kinds(kinds, "the schedule of the learning rate; without one the rate is constant",
                [&](size_t kind, Keys& params) {
                  int64_t start = 0;
                  params.integer("start_step", start, at_least(0),
                                 "updates of the run before the schedule begins");
                  std::optional<int64_t> total = total_updates;
                  if (total) total = *total > start ? *total - start : 0;
                  schedule = entries[kind].make({params, base_rate, total});
                  if (start == 0) return;
                  schedule = std::make_unique<ShiftedSchedule>(std::move(schedule), start);
                });
  return schedule;
}

}  // namespace onebit::optim
