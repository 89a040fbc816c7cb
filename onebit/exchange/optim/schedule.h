// Learning-rate schedules: pure functions of the number of the update, so that a resumed run
// continues exactly. DeepSpeed's names, parameters and values; the schedules of its BERT example;
// and a few that BERT recipes use.
//
// DeepSpeed numbers its schedule by t = (update - 2): the first update has the initial value and
// the second t = 0, so a warm-up from zero makes the first two updates at its minimum. onebit keeps
// this, so that DeepSpeed's configs give the same learning rates.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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

// Reads {"type": ..., "params": {...}}; an empty section is a constant rate. `base_rate` is the
// optimizer's lr. `total_updates` of the run is the default of total_num_steps (0: the run has no
// length; empty: it is not known yet, and the schedule must not be used). Errors are recorded in
// `section`.
std::unique_ptr<Schedule> make_schedule(Keys section, double base_rate,
                                        std::optional<int64_t> total_updates);

}  // namespace onebit::optim
