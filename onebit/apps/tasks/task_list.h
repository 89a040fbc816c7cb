// Every task that a recipe may name, one line each.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "onebit/exchange/engine/config.h"
#include "onebit/training/training/session_config.h"

namespace onebit::tasks {

// The facts about a recipe that are known before it runs.
struct RecipeFacts {
  engine::EngineConfig engine;
  training::SessionConfig session;
  // The keys of `onebit inspect` that only this task has.
  std::function<Json(const engine::BatchSizes& batch)> of_task;
  // The minimum memory per rank with `ranks` ranks: values, gradients, the optimizer's state,
  // activations with the most economical memory options. Empty: unknown from the recipe, because
  // its model's shape is that of a checkpoint.
  std::function<int64_t(const engine::BatchSizes& batch, int ranks)> least_bytes = {};
  // The minimum size of the model in a checkpoint. 0: unknown, as above.
  int64_t model_file_bytes = 0;
};

struct TaskEntry {
  const char* name;     // the recipe's key "task"
  const char* command;  // trains it
  // Lists the keys of a recipe; returns the engine's part of it.
  engine::EngineConfig (*read)(Keys& recipe);
  RecipeFacts (*inspect)(const Json& recipe, const std::string& place);
};

std::span<const TaskEntry> tasks();

// The task of a recipe; the default one if the recipe names none. Error: an unknown name.
const TaskEntry& task_of(const Json& recipe, const std::string& place);

// Lists the key "task" of a recipe passed to a command of the task `name`, which is its default.
// Reports another task's recipe as a fault, with the command that trains it.
void require_task(Keys& recipe, const std::string& name);
// Error: the recipe is of another task than `name`. Called before the other keys are read, which
// would all be faults.
void require_recipe_of(const std::string& name, const Json& recipe, const std::string& place);

}  // namespace onebit::tasks
