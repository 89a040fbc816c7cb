// Learning-rate schedules: pure functions of the number of the update, so that a resumed run
// continues exactly. DeepSpeed's names, parameters and values; the schedules of its BERT example;
// and a few that BERT recipes use.
//
// DeepSpeed numbers its schedule by t = (update - 2): the first update runs with the initial value
// and the second with t = 0, so a warm-up from zero makes the first two updates at its minimum.
// That is kept, so that DeepSpeed's configs give the same learning rates.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "onebit/base/keys.h"

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
  // Updates of the warm-up: no later one has a rate that is still on its way up. 0: no warm-up.
  virtual int64_t warmup_updates() const = 0;
};

// Reads {"type": ..., "params": {...}}; an empty section is a constant rate. `base_rate` is the
// optimizer's lr. `total_updates` (the run's, 0: it has no length; empty: the length is not known
// yet and the schedule not to be used) stands in for an absent total_num_steps. What is wrong,
// `section` then knows.
std::unique_ptr<Schedule> make_schedule(Keys section, double base_rate,
                                        std::optional<int64_t> total_updates);

}  // namespace onebit::optim
