// The schedules by origin. Each maker lists its own parameters.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/optim/schedule.h"

namespace onebit::optim {

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
// LE, EE, EP and warmup_linear of DeepSpeed's BERT example; linear, polynomial, constant.
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
