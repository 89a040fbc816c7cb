// Learning-rate schedules: pure functions of the number of the update, so that a resumed run
// continues exactly. DeepSpeed's names, parameters and values; the schedules of its BERT example;
// and a few that BERT recipes use.
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

}  // namespace onebit::optim
