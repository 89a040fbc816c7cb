// Every task that a recipe may name, one line each.
#pragma once

#include <memory>
#include <span>

#include "onebit/training/training/task_kind.h"

namespace onebit::inspect {

// In the order of training::kTaskNames.
std::span<const training::TaskKind> tasks();

// Returns the task that a recipe names, or the default one. Error: an unknown name.
const training::TaskKind& task_of(const Recipe& recipe);

// Makes the task that the recipe of `run` names, of any kind (training::MakeTask).
std::unique_ptr<training::Task> make_task(Context& context, const training::RunOptions& run,
                                          const training::TaskInputs& inputs,
                                          const training::Connection& connection);

}  // namespace onebit::inspect
