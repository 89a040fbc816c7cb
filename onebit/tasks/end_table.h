// What a run has done, told once at its end.
#pragma once

#include "onebit/tasks/start_table.h"
#include "onebit/tasks/training_log.h"
#include "onebit/tasks/training_loop.h"

namespace onebit::tasks {

// Steps, time and where it went, results of the task, bytes sent. `totals` are of this process:
// where the run was resumed, each row says whether it is of the whole run.
Rows end_table(const TrainingTotals& totals, TrainingRun& run);

// To standard error.
void print_rows(const Rows& rows);

}  // namespace onebit::tasks
