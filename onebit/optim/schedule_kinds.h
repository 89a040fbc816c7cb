// The schedules by where they come from. Each maker reads its own parameters and leaves finish() to
// the caller.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "onebit/optim/schedule.h"

namespace onebit::optim {

struct ScheduleInput {
  JsonReader& params;
  double base_rate = 0;       // the optimizer's lr
  int64_t total_updates = 0;  // the run's, 0: not known
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

using ScheduleMaker = std::function<std::unique_ptr<Schedule>(const ScheduleInput&)>;

// LRRangeTest, OneCycle, WarmupLR, WarmupDecayLR, WarmupCosineLR.
std::map<std::string, ScheduleMaker> deepspeed_schedules();
// LE, EE, EP and warmup_linear of DeepSpeed's BERT example; linear, polynomial, constant.
std::map<std::string, ScheduleMaker> bert_schedules();

// total_num_steps, or the length of the run. Error: neither is known, or it is below 1.
int64_t total_steps_of(const ScheduleInput& input);
// A rate, or a list of equal ones: all parameters share one rate here. Errors: negative, different.
double rate_of(JsonReader& params, const std::string& key, double fallback);

}  // namespace onebit::optim
