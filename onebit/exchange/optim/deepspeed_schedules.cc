#include <algorithm>
#include <cmath>
#include <numbers>

#include "onebit/exchange/optim/schedule.h"

namespace onebit::optim {
namespace {

// DeepSpeed's index: -1 for the first update.
double index_of(int64_t update) {
  return static_cast<double>(update - 2);
}

using Make = ScheduleOptions::Make;

std::unique_ptr<Schedule> formula(int64_t warmup, std::function<Rate(double t)> rate) {
  return std::make_unique<FormulaSchedule>(
      warmup, [rate = std::move(rate)](int64_t update) { return rate(index_of(update)); });
}

// A schedule that does not depend on the length of the run.
Make endless(int64_t warmup, const std::function<Rate(double t)>& rate) {
  return [warmup, rate](int64_t, std::vector<std::string>&) { return formula(warmup, rate); };
}

Make range_test(const ScheduleInput& input) {
  Keys& params = input.params;
  double least = 1e-3, growth = 1;
  int64_t interval_size = 2000;
  bool staircase = false;
  params.rate("lr_range_test_min_lr", least, "rate at the beginning");
  params.integer("lr_range_test_step_size", interval_size, at_least(1), "updates per interval");
  params.number("lr_range_test_step_rate", growth, {}, "growth of the rate per interval");
  params.boolean("lr_range_test_staircase", staircase, "change the rate only once per interval");
  const auto size = static_cast<double>(interval_size);
  return endless(INT64_MAX, [=](double t) {
    const double interval = (t + 1) / size;
    return Rate{least * (1 + growth * (staircase ? std::floor(interval) : interval)), {}};
  });
}

struct OneCycle {
  double least = 0, most = 0, first = 0, second = 0, decay_size = 0, rate_decay = 0;
  bool cycles_momentum = true;
  double least_momentum = 0.8, most_momentum = 0.9, momentum_decay = 0;

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
    // DeepSpeed's momentum grows beyond 1 here, with which no average is stable.
    return with_momentum(least / (1 + rate_decay * steps),
                         std::min(most_momentum * (1 + momentum_decay * steps), 0.9999));
  }
  Rate with_momentum(double rate, double momentum) const {
    return {rate, cycles_momentum ? std::optional(momentum) : std::nullopt};
  }
};

void read_cycle_rates(Keys& params, OneCycle& cycle) {
  params.rate("cycle_min_lr", cycle.least, "rate at both ends of the cycle");
  params.rate("cycle_max_lr", cycle.most, "rate at the peak");
  params.need("cycle_min_lr", "OneCycle needs it");
  params.need("cycle_max_lr", "OneCycle needs it");
  int64_t first = 2000;
  params.integer("cycle_first_step_size", first, at_least(1),
                 "updates of the rising part of the cycle");
  int64_t second = first, decay_size = 0;
  params.integer("cycle_second_step_size", second, at_least(1),
                 {"updates of the falling part of the cycle", "cycle_first_step_size"});
  params.integer("decay_step_size", decay_size, at_least(0),
                 "updates per decay step after the cycle, where 0 is no decay");
  params.number("decay_lr_rate", cycle.rate_decay, at_least(0), "decay of the rate per decay step");
  cycle.first = static_cast<double>(first);
  cycle.second = static_cast<double>(second);
  cycle.decay_size = static_cast<double>(decay_size);
}

void read_cycle_momentum(Keys& params, OneCycle& cycle) {
  params.boolean("cycle_momentum", cycle.cycles_momentum,
                 "cycle beta1 in the opposite direction to the rate");
  params.number("cycle_min_mom", cycle.least_momentum, at_least(0).below(1), "beta1 at the peak");
  params.number("cycle_max_mom", cycle.most_momentum, at_least(0).below(1),
                "beta1 at both ends of the cycle");
  params.number("decay_mom_rate", cycle.momentum_decay, {},
                "growth of beta1 per decay step after the cycle");
  params.require(cycle.least_momentum <= cycle.most_momentum, "cycle_min_mom",
                 "is {}, which is above cycle_max_mom ({})", cycle.least_momentum,
                 cycle.most_momentum);
}

Make one_cycle(const ScheduleInput& input) {
  Keys& params = input.params;
  OneCycle cycle;
  read_cycle_rates(params, cycle);
  read_cycle_momentum(params, cycle);
  std::vector<std::string> without_effect;
  for (const char* key : {"cycle_first_stair_count", "cycle_second_stair_count"}) {
    double stairs = 0;
    params.number(key, stairs, {}, "no effect: DeepSpeed reads this key but does not use it");
    if (stairs > 0) {
      without_effect.push_back(params.place(key) +
                               " has no effect: DeepSpeed reads this key but does not use it");
    }
  }
  return [=](int64_t, std::vector<std::string>& warnings) {
    warnings.insert(warnings.end(), without_effect.begin(), without_effect.end());
    return formula(static_cast<int64_t>(cycle.first) + 1,
                   [cycle](double t) { return cycle.at(t); });
  };
}

// The progress of the warm-up, 0 to 1, of the schedules that begin with one.
struct Warmup {
  double steps;
  bool logarithmic = true;

  explicit Warmup(Keys& params) {
    int64_t updates_given = 1000;
    params.integer("warmup_num_steps", updates_given, at_least(0),
                   "updates of the warm-up, where a value below 2 counts as 2");
    params.choice("warmup_type", logarithmic, {{"log", true}, {"linear", false}},
                  "how the rate rises");
    steps = static_cast<double>(std::max<int64_t>(2, updates_given));
  }
  double at(double t) const {
    if (t < 0) return 0;
    if (t >= steps) return 1;
    return logarithmic ? std::log(t + 1) / std::log(steps) : t / steps;
  }
  int64_t updates() const { return static_cast<int64_t>(steps) + 1; }
};

struct WarmupRates {
  double least = 0, most = 1e-3;

  explicit WarmupRates(Keys& params) {
    params.rate("warmup_min_lr", least, "rate at the beginning");
    params.rate("warmup_max_lr", most, "rate after the warm-up");
  }
  double at(double share) const { return least + (most - least) * share; }
};

Make warmup(const ScheduleInput& input) {
  const Warmup warmup(input.params);
  const WarmupRates rates(input.params);
  return endless(warmup.updates(), [=](double t) { return Rate{rates.at(warmup.at(t)), {}}; });
}

double decay_end(const ScheduleLength& length, int64_t rest, const Warmup& warmup,
                 std::vector<std::string>& warnings) {
  const auto total = static_cast<double>(length.of(rest));
  if (total < warmup.steps) {
    warnings.push_back(fmt::format(
        "{} = {} is less than warmup_num_steps = {}: the rate drops immediately after its peak",
        length.place, total, warmup.steps));
  }
  return total;
}

Make warmup_decay(const ScheduleInput& input) {
  const Warmup warmup(input.params);
  const WarmupRates rates(input.params);
  const ScheduleLength length = read_length(input);
  return [=](int64_t rest, std::vector<std::string>& warnings) {
    const double total = decay_end(length, rest, warmup, warnings);
    return formula(warmup.updates(), [=](double t) {
      const double share = t < warmup.steps
                               ? warmup.at(t)
                               : std::max(0.0, (total - t) / std::max(1.0, total - warmup.steps));
      return Rate{rates.at(share), {}};
    });
  };
}

// DeepSpeed's schedule rises again after total_num_steps, starts the groups after the first at
// their full rate and divides by zero if the warm-up is the whole run. Here the final rate is kept,
// all groups start at zero, and the end follows immediately.
Make warmup_cosine(const ScheduleInput& input) {
  const Warmup warmup(input.params);
  double least = 0, end = 1e-4;
  input.params.number("warmup_min_ratio", least, {},
                      "initial rate as a fraction of the optimizer's lr");
  input.params.number("cos_min_ratio", end, {}, "final rate as a fraction of the optimizer's lr");
  const ScheduleLength length = read_length(input);
  return [=, base = input.base_rate](int64_t rest, std::vector<std::string>& warnings) {
    const double total = decay_end(length, rest, warmup, warnings);
    return formula(warmup.updates(), [=](double t) {
      if (t < 0) return Rate{0, {}};
      if (t < warmup.steps) return Rate{base * (least + (1 - least) * warmup.at(t)), {}};
      const double decay = total - warmup.steps;
      const double share = decay > 0 ? std::min(1.0, (t - warmup.steps + 1) / decay) : 1;
      const double ratio = end + (1 - end) * (1 + std::cos(std::numbers::pi * share)) / 2;
      return Rate{base * std::max(0.0, ratio), {}};
    });
  };
}

}  // namespace

std::vector<ScheduleEntry> deepspeed_schedules() {
  return {{"LRRangeTest", range_test},
          {"OneCycle", one_cycle},
          {"WarmupLR", warmup},
          {"WarmupDecayLR", warmup_decay},
          {"WarmupCosineLR", warmup_cosine}};
}

}  // namespace onebit::optim
