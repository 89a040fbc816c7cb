// Learning-rate schedules: pure functions of the number of the update, so that a resumed run
// continues exactly. They are DeepSpeed's, with its names, parameters and values, the schedules of
// its BERT example, and a few that BERT recipes use.
//
// DeepSpeed numbers its schedule by t = (update - 2): the first update has the initial value and
// the second t = 0, so a warm-up from zero makes the first two updates at its minimum. onebit keeps
// this, so that DeepSpeed's configs give the same learning rates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/recipe/keys.h"

namespace onebit::optim {

struct Rate {
  double learning_rate = 0;
  std::optional<double> beta1;  // set by schedules that cycle momentum
};

class Schedule {
 public:
  virtual ~Schedule() = default;
  // For update number `update`, from 1 (skipped steps do not count).
  virtual Rate at(int64_t update) const = 0;
  // Updates of the warm-up: no later update has a rate that still rises. 0: no warm-up.
  virtual int64_t warmup_updates() const = 0;
};

// A schedule as a recipe describes it: {"type": ..., "params": {...}}. It is made when the length
// of the run is known, which may be after the recipe was read.
struct ScheduleOptions {
  // Makes the schedule for a run of `updates`, which is 0 for a run without a length. Adds to
  // `warnings`. Error: the schedule has no length either.
  using Make =
      std::function<std::unique_ptr<Schedule>(int64_t updates, std::vector<std::string>& warnings)>;

  std::string type = "constant";
  Make make;
  int64_t start = 0;           // updates of the run before it begins
  bool ends_with_run = false;  // it has a length, which the recipe does not give

  int64_t rest_of(int64_t updates) const { return std::max<int64_t>(updates - start, 0); }
};

// Lists the keys of the section `scheduler`. An empty one is a constant rate. `base_rate` is the
// optimizer's lr. `updates` is the length of the run, if it is known, and then the default of
// total_num_steps.
ScheduleOptions read_schedule(Keys section, double base_rate, std::optional<int64_t> updates);

// The schedules by origin. Each maker lists its own parameters.
struct ScheduleInput {
  Keys& params;
  double base_rate = 0;         // the optimizer's lr
  std::optional<int64_t> rest;  // updates of the run after start_step, if they are known
  bool& ends_with_run;          // of ScheduleOptions, set by read_length()
};

// A schedule that is a formula.
class FormulaSchedule : public Schedule {
 public:
  using Formula = std::function<Rate(int64_t update)>;
  FormulaSchedule(int64_t warmup_updates, Formula formula)
      : warmup_updates_(warmup_updates), formula_(std::move(formula)) {}

  Rate at(int64_t update) const override { return formula_(update); }
  int64_t warmup_updates() const override { return warmup_updates_; }

 private:
  int64_t warmup_updates_;
  Formula formula_;
};

struct ScheduleEntry {
  const char* name;  // the recipe's scheduler.type
  // The result is called with the updates of the run after start_step.
  ScheduleOptions::Make (*read)(const ScheduleInput& input);
};

// LRRangeTest, OneCycle, WarmupLR, WarmupDecayLR, WarmupCosineLR.
std::vector<ScheduleEntry> deepspeed_schedules();
// LE, EE, EP and warmup_linear of DeepSpeed's BERT example, and linear, polynomial, constant.
std::vector<ScheduleEntry> bert_schedules();

// total_num_steps, or else what is left of the run.
struct ScheduleLength {
  std::optional<int64_t> given;
  std::string place;  // of the key, for errors

  // Error: neither is known.
  int64_t of(int64_t rest) const;
};
ScheduleLength read_length(const ScheduleInput& input);

}  // namespace onebit::optim
