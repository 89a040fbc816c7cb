#include <algorithm>
#include <cmath>
#include <numbers>

#include "onebit/base/log.h"
#include "onebit/optim/schedule_kinds.h"

namespace onebit::optim {
namespace {

// DeepSpeed's index: -1 for the first update.
double index_of(int64_t update) {
  return static_cast<double>(update - 2);
}

std::unique_ptr<Schedule> formula(int64_t warmup, std::function<Rate(double t)> rate) {
  return std::make_unique<FormulaSchedule>(
      warmup, [rate = std::move(rate)](int64_t update) { return rate(index_of(update)); });
}

std::unique_ptr<Schedule> range_test(const ScheduleInput& input) {
  JsonReader& params = input.params;
  const double least = rate_of(params, "lr_range_test_min_lr", 1e-3);
  const auto size = static_cast<double>(params.integer("lr_range_test_step_size", 2000));
  const double growth = params.number("lr_range_test_step_rate", 1.0);
  const bool staircase = params.boolean("lr_range_test_staircase", false);
  require(size >= 1, "{} must be at least 1", params.place("lr_range_test_step_size"));
  return formula(INT64_MAX, [=](double t) {
    const double interval = (t + 1) / size;
    return Rate{least * (1 + growth * (staircase ? std::floor(interval) : interval)), {}};
  });
}

struct OneCycle {
  double least, most, first, second, decay_size, rate_decay;
  bool cycles_momentum;
  double least_momentum, most_momentum, momentum_decay;

  // 0 at the ends of the cycle, 1 at its peak.
  double height(double t) const {
    const double total = first + second, turn = first / total;
    const double cycle = std::floor(1 + (t + 1) / total);
    const double x = 1 + (t + 1) / total - cycle;
    return x <= turn ? x / turn : (x - 1) / (turn - 1);
  }
  Rate at(double t) const {
    if (t < 0) return with_momentum(least, least_momentum);
    const double total = first + second;
    if (t < total) {
      const double s = height(t);
      return with_momentum(least + (most - least) * s,
                           most_momentum - (most_momentum - least_momentum) * s);
    }
    const double steps = decay_size > 0 ? (t - total + 1) / decay_size : 0;
    // DeepSpeed's momentum grows past 1 here, which no average survives.
    return with_momentum(least / (1 + rate_decay * steps),
                         std::min(most_momentum * (1 + momentum_decay * steps), 0.9999));
  }
  Rate with_momentum(double rate, double momentum) const {
    return {rate, cycles_momentum ? std::optional(momentum) : std::nullopt};
  }
};

std::unique_ptr<Schedule> one_cycle(const ScheduleInput& input) {
  JsonReader& params = input.params;
  for (const char* key : {"cycle_min_lr", "cycle_max_lr"}) {
    require(params.has(key), "{} is missing; OneCycle needs it", params.place(key));
  }
  OneCycle cycle{};
  cycle.least = rate_of(params, "cycle_min_lr", 0);
  cycle.most = rate_of(params, "cycle_max_lr", 0);
  cycle.first = static_cast<double>(params.integer("cycle_first_step_size", 2000));
  cycle.second = static_cast<double>(
      params.integer("cycle_second_step_size", static_cast<int64_t>(cycle.first)));
  cycle.decay_size = static_cast<double>(params.integer("decay_step_size", 0));
  cycle.rate_decay = params.number("decay_lr_rate", 0);
  cycle.cycles_momentum = params.boolean("cycle_momentum", true);
  cycle.least_momentum = params.number("cycle_min_mom", 0.8);
  cycle.most_momentum = params.number("cycle_max_mom", 0.9);
  cycle.momentum_decay = params.number("decay_mom_rate", 0);
  require(cycle.first >= 1 && cycle.second >= 1, "{} and the second size must be at least 1",
          params.place("cycle_first_step_size"));
  require(cycle.decay_size >= 0 && cycle.rate_decay >= 0, "{} and decay_lr_rate are not negative",
          params.place("decay_step_size"));
  require(cycle.least_momentum >= 0 && cycle.least_momentum <= cycle.most_momentum &&
              cycle.most_momentum < 1,
          "{}: 0 <= cycle_min_mom <= cycle_max_mom < 1 is needed, got {} and {}",
          params.place("cycle_min_mom"), cycle.least_momentum, cycle.most_momentum);
  for (const char* key : {"cycle_first_stair_count", "cycle_second_stair_count"}) {
    if (params.number(key, 0) > 0) {
      log_warning("{} has no effect: DeepSpeed reads it and never uses it", params.place(key));
    }
  }
  return formula(static_cast<int64_t>(cycle.first) + 1, [cycle](double t) { return cycle.at(t); });
}

// The share of the way up, 0 to 1, of the schedules that begin with a warm-up.
struct Warmup {
  double steps;
  bool logarithmic;

  explicit Warmup(JsonReader& params)
      : steps(static_cast<double>(std::max<int64_t>(2, params.integer("warmup_num_steps", 1000)))),
        logarithmic(params.choice("warmup_type", "log", {"log", "linear"}) == "log") {}
  double at(double t) const {
    if (t < 0) return 0;
    if (t >= steps) return 1;
    return logarithmic ? std::log(t + 1) / std::log(steps) : t / steps;
  }
  int64_t updates() const { return static_cast<int64_t>(steps) + 1; }
};

std::unique_ptr<Schedule> warmup(const ScheduleInput& input) {
  const Warmup warmup(input.params);
  const double least = rate_of(input.params, "warmup_min_lr", 0);
  const double most = rate_of(input.params, "warmup_max_lr", 1e-3);
  return formula(warmup.updates(), [=](double t) {
    return Rate{least + (most - least) * warmup.at(t), {}};
  });
}

double decay_end(const ScheduleInput& input, const Warmup& warmup) {
  const auto total = static_cast<double>(total_steps_of(input));
  if (total < warmup.steps) {
    log_warning("{} = {} is less than warmup_num_steps = {}: the rate falls at once after its peak",
                input.params.place("total_num_steps"), total, warmup.steps);
  }
  return total;
}

std::unique_ptr<Schedule> warmup_decay(const ScheduleInput& input) {
  const Warmup warmup(input.params);
  const double least = rate_of(input.params, "warmup_min_lr", 0);
  const double most = rate_of(input.params, "warmup_max_lr", 1e-3);
  const double total = decay_end(input, warmup);
  return formula(warmup.updates(), [=](double t) {
    const double share = t < warmup.steps
                             ? warmup.at(t)
                             : std::max(0.0, (total - t) / std::max(1.0, total - warmup.steps));
    return Rate{least + (most - least) * share, {}};
  });
}

// DeepSpeed's rises again after total_num_steps, starts the groups after the first at their full
// rate and divides by zero when the warm-up is the whole run; here the end is kept, all start at
// zero, and the end follows at once.
std::unique_ptr<Schedule> warmup_cosine(const ScheduleInput& input) {
  const Warmup warmup(input.params);
  const double least = input.params.number("warmup_min_ratio", 0);
  const double end = input.params.number("cos_min_ratio", 1e-4);
  const double total = decay_end(input, warmup), base = input.base_rate;
  return formula(warmup.updates(), [=](double t) {
    if (t < 0) return Rate{0, {}};
    if (t < warmup.steps) return Rate{base * (least + (1 - least) * warmup.at(t)), {}};
    const double length = total - warmup.steps;
    const double share = length > 0 ? std::min(1.0, (t - warmup.steps + 1) / length) : 1;
    const double ratio = end + (1 - end) * (1 + std::cos(std::numbers::pi * share)) / 2;
    return Rate{base * std::max(0.0, ratio), {}};
  });
}

}  // namespace

std::map<std::string, ScheduleMaker> deepspeed_schedules() {
  return {{"LRRangeTest", range_test},
          {"OneCycle", one_cycle},
          {"WarmupLR", warmup},
          {"WarmupDecayLR", warmup_decay},
          {"WarmupCosineLR", warmup_cosine}};
}

}  // namespace onebit::optim
