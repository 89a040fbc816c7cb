// What a run has done, told once at its end.
#pragma once

#include "onebit/tasks/start_table.h"
#include "onebit/tasks/training_log.h"

namespace onebit::tasks {

// Steps, time and where it went, `results` of the task, bytes sent. `steps` and `samples` are those
// of the whole run; `totals` those since this process began: where the run was resumed, each row
// says which.
Rows end_table(const TrainingTotals& totals, int64_t steps, int64_t samples, const Rows& results);

// To standard error.
void print_rows(const Rows& rows);

}  // namespace onebit::tasks
