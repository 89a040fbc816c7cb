#include <algorithm>
#include <cmath>

#include "onebit/exchange/optim/schedule.h"

namespace onebit::optim {
namespace {

using Make = ScheduleOptions::Make;

// All schedules here are functions of the completed updates: the first update has f(0), which is 0
// if there is a warm-up, as in the BERT example and in PyTorch's LambdaLR.
struct Progress {
  double total = 0;   // updates of the whole schedule
  double warmup = 0;  // updates of the warm-up, not rounded

  double share(double completed) const { return completed / total; }
};

struct ProgressOptions {
  ScheduleLength length;
  std::optional<int64_t> warmup;  // in updates, or else `proportion` of the schedule
  double proportion = 0;

  Progress of(int64_t rest) const {
    const auto total = static_cast<double>(length.of(rest));
    return {.total = total, .warmup = warmup ? static_cast<double>(*warmup) : proportion * total};
  }
};

ProgressOptions read_progress(const ScheduleInput& input, double proportion) {
  Keys& params = input.params;
  ProgressOptions progress = {.length = read_length(input), .proportion = proportion};
  params.integer("warmup_num_steps", progress.warmup, at_least(0),
                 {"updates of the warm-up", "warmup_proportion of the schedule"});
  const bool has_both = progress.warmup && params.has("warmup_proportion");
  params.require(!has_both, "warmup_num_steps", "and warmup_proportion are both given; keep one");
  params.number("warmup_proportion", progress.proportion, at_least(0).up_to(1),
                "warm-up as a fraction of the schedule");
  if (progress.warmup) params.leave_out("warmup_proportion");
  return progress;
}

using Factor = std::function<double(double completed)>;

// base * factor(completed updates) + lr_offset.
struct Scale {
  double base, offset = 0;

  explicit Scale(const ScheduleInput& input) : base(input.base_rate) {
    input.params.rate("lr", base, {"rate at the peak", "the optimizer's lr"});
    input.params.rate("lr_offset", offset, "added to every rate");
  }
  std::unique_ptr<Schedule> of(double warmup, Factor factor) const {
    return std::make_unique<FormulaSchedule>(
        static_cast<int64_t>(std::ceil(warmup)),
        [base = base, offset = offset, factor = std::move(factor)](int64_t update) {
          return Rate{base * factor(static_cast<double>(update - 1)) + offset, {}};
        });
  }
};

// `factor_of` returns the factor of a schedule of this length.
Make scaled(const ScheduleInput& input, const ProgressOptions& options,
            const std::function<Factor(const Progress&)>& factor_of) {
  return [options, factor_of, scale = Scale(input)](int64_t rest, std::vector<std::string>&) {
    const Progress progress = options.of(rest);
    return scale.of(progress.warmup, factor_of(progress));
  };
}

// (x / w)^power, then rate^((step - W) / decay_step): LE with power 1, EE with 2.
Make exponential(const ScheduleInput& input, double power) {
  const ProgressOptions options = read_progress(input, 0.002);
  double decay = 0.99, decay_step = 520;
  input.params.number("decay_rate", decay, above(0).up_to(1),
                      "factor applied to the rate every decay_step updates after the warm-up");
  input.params.number("decay_step", decay_step, above(0), "updates per factor of decay_rate");
  return scaled(input, options, [=](const Progress& progress) -> Factor {
    return [=](double completed) {
      if (progress.warmup == 0) return 1.0;  // as in the example: without warm-up there is no decay
      if (completed < progress.warmup) return std::pow(completed / progress.warmup, power);
      return std::pow(decay, (completed - progress.warmup) / decay_step);
    };
  });
}

// (x / w)^1.5, then (1 - x)^2. In the example the rate rises again after the end. Here it stays 0.
Make power_then_square(const ScheduleInput& input) {
  return scaled(input, read_progress(input, 0.002), [](const Progress& progress) -> Factor {
    return [=](double completed) {
      if (completed < progress.warmup) return std::pow(completed / progress.warmup, 1.5);
      const double left = std::max(0.0, 1 - progress.share(completed));
      return left * left;
    };
  });
}

// x / w, then 1 - x: falls from 1 to 1 - w at the end of the warm-up, as in the SQuAD scripts.
Make warmup_linear(const ScheduleInput& input) {
  return scaled(input, read_progress(input, 0.1), [](const Progress& progress) -> Factor {
    return [=](double completed) {
      if (completed < progress.warmup) return completed / progress.warmup;
      return std::max(0.0, 1 - progress.share(completed));
    };
  });
}

// Rises to 1, then follows (share of the way left)^power down to end_ratio, without a jump.
Make polynomial(const ScheduleInput& input, double power) {
  const ProgressOptions options = read_progress(input, 0);
  double end = 0;
  input.params.number("end_ratio", end, {}, "final rate as a fraction of the peak rate");
  return scaled(input, options, [=](const Progress& progress) -> Factor {
    return [=](double completed) {
      if (completed < progress.warmup) return completed / progress.warmup;
      const double length = std::max(1.0, progress.total - progress.warmup);
      const double left = std::clamp((progress.total - completed) / length, 0.0, 1.0);
      return end + (1 - end) * std::pow(left, power);
    };
  });
}

Make constant(const ScheduleInput& input) {
  int64_t updates = 0;
  input.params.integer("warmup_num_steps", updates, at_least(0), "updates of the warm-up");
  const auto warmup = static_cast<double>(updates);
  return [warmup, scale = Scale(input)](int64_t, std::vector<std::string>&) {
    return scale.of(warmup, [warmup](double completed) {
      return completed < warmup ? completed / warmup : 1.0;
    });
  };
}

}  // namespace

std::vector<ScheduleEntry> bert_schedules() {
  return {{"LE", [](const ScheduleInput& input) { return exponential(input, 1); }},
          {"EE", [](const ScheduleInput& input) { return exponential(input, 2); }},
          {"EP", power_then_square},
          {"warmup_linear", warmup_linear},
          {"linear", [](const ScheduleInput& input) { return polynomial(input, 1); }},
          {"polynomial",
           [](const ScheduleInput& input) {
             double power = 1;
             input.params.number("power", power, {},
                                 "exponent of the remaining fraction of the decay");
             return polynomial(input, power);
           }},
          {"constant", constant}};
}

}  // namespace onebit::optim
