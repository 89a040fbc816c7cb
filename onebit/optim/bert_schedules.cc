#include <algorithm>
#include <cmath>

#include "onebit/optim/schedule_kinds.h"

namespace onebit::optim {
namespace {

// All of these are functions of the completed updates: the first update has f(0), which is 0 where
// there is a warm-up, as in the BERT example and in PyTorch's LambdaLR.
struct Progress {
  double total = 0;   // updates of the whole schedule
  double warmup = 0;  // updates of the warm-up, not rounded

  double share(double completed) const { return completed / total; }
};

Progress progress_of(const ScheduleInput& input, double default_proportion) {
  JsonReader& params = input.params;
  Progress progress;
  progress.total = static_cast<double>(total_steps_of(input));
  if (params.has("warmup_num_steps")) {
    require(!params.has("warmup_proportion"), "{}: give it or warmup_proportion, not both",
            params.place("warmup_num_steps"));
    progress.warmup = static_cast<double>(params.integer("warmup_num_steps", 0));
    require(progress.warmup >= 0, "{} is negative", params.place("warmup_num_steps"));
    return progress;
  }
  const double proportion = params.number("warmup_proportion", default_proportion);
  require(proportion >= 0 && proportion <= 1, "{} is {}; it is a share of the run, 0 to 1",
          params.place("warmup_proportion"), proportion);
  progress.warmup = proportion * progress.total;
  return progress;
}

// base * factor(completed updates) + lr_offset.
std::unique_ptr<Schedule> scaled(const ScheduleInput& input, double warmup,
                                 std::function<double(double completed)> factor) {
  const double base = rate_of(input.params, "lr", input.base_rate);
  const double offset = rate_of(input.params, "lr_offset", 0);
  const auto warmup_updates = static_cast<int64_t>(std::ceil(warmup));
  return std::make_unique<FormulaSchedule>(
      warmup_updates, [base, offset, factor = std::move(factor)](int64_t update) {
        return Rate{base * factor(static_cast<double>(update - 1)) + offset, {}};
      });
}

// (x / w)^power, then rate^((step - W) / decay_step): LE with power 1, EE with 2.
std::unique_ptr<Schedule> exponential(const ScheduleInput& input, double power) {
  const Progress progress = progress_of(input, 0.002);
  const double decay = input.params.number("decay_rate", 0.99);
  const double decay_step = input.params.number("decay_step", 520);
  require(decay > 0 && decay <= 1, "{} is {}; it must be above 0 and at most 1",
          input.params.place("decay_rate"), decay);
  require(decay_step > 0, "{} must be above 0", input.params.place("decay_step"));
  return scaled(input, progress.warmup, [=](double completed) {
    if (progress.warmup == 0) return 1.0;  // the example's: no warm-up, no decay either
    if (completed < progress.warmup) return std::pow(completed / progress.warmup, power);
    return std::pow(decay, (completed - progress.warmup) / decay_step);
  });
}

// (x / w)^1.5, then (1 - x)^2. The example's rises again after the end; here it stays at 0.
std::unique_ptr<Schedule> power_then_square(const ScheduleInput& input) {
  const Progress progress = progress_of(input, 0.002);
  return scaled(input, progress.warmup, [=](double completed) {
    if (completed < progress.warmup) return std::pow(completed / progress.warmup, 1.5);
    const double left = std::max(0.0, 1 - progress.share(completed));
    return left * left;
  });
}

// x / w, then 1 - x: falls from 1 to 1 - w at the end of the warm-up, as in the SQuAD scripts.
std::unique_ptr<Schedule> warmup_linear(const ScheduleInput& input) {
  const Progress progress = progress_of(input, 0.1);
  return scaled(input, progress.warmup, [=](double completed) {
    if (completed < progress.warmup) return completed / progress.warmup;
    return std::max(0.0, 1 - progress.share(completed));
  });
}

// Up to 1, then (share of the way left)^power down to end_ratio, without a jump between.
std::unique_ptr<Schedule> polynomial(const ScheduleInput& input, double power) {
  const Progress progress = progress_of(input, 0);
  const double end = input.params.number("end_ratio", 0);
  return scaled(input, progress.warmup, [=](double completed) {
    if (completed < progress.warmup) return completed / progress.warmup;
    const double length = std::max(1.0, progress.total - progress.warmup);
    const double left = std::clamp((progress.total - completed) / length, 0.0, 1.0);
    return end + (1 - end) * std::pow(left, power);
  });
}

std::unique_ptr<Schedule> constant(const ScheduleInput& input) {
  const auto warmup = static_cast<double>(input.params.integer("warmup_num_steps", 0));
  return scaled(input, warmup,
                [=](double completed) { return completed < warmup ? completed / warmup : 1.0; });
}

}  // namespace

std::map<std::string, ScheduleMaker> bert_schedules() {
  return {{"LE", [](const ScheduleInput& input) { return exponential(input, 1); }},
          {"EE", [](const ScheduleInput& input) { return exponential(input, 2); }},
          {"EP", power_then_square},
          {"warmup_linear", warmup_linear},
          {"linear", [](const ScheduleInput& input) { return polynomial(input, 1); }},
          {"polynomial",
           [](const ScheduleInput& input) {
             return polynomial(input, input.params.number("power", 1));
           }},
          {"constant", constant}};
}

}  // namespace onebit::optim
