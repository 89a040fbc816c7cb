// What a run has done, told once at its end.
#pragma once

#include "onebit/training/session.h"
#include "onebit/training/start_table.h"
#include "onebit/training/training_log.h"

namespace onebit::training {

// Steps, time and where it went, a step beside what was expected of it, results of the task, bytes
// sent. `totals` are of this process: where the run was resumed, each row says whether it is of the
// whole run.
Rows end_table(const TrainingTotals& totals, const StepForecast& expected, Session& run);

// "1.23 s (the middle of 40), expected 1.20 s" for each phase that had steps.
Rows step_rows(const TrainingTotals& totals, const StepForecast& expected);

}  // namespace onebit::training
