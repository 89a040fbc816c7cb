// Every task that a recipe may name, one line each.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "onebit/engine/config.h"
#include "onebit/training/session_config.h"

namespace onebit::tasks {

// What is known of a recipe before it runs.
struct RecipeFacts {
  engine::EngineConfig engine;
  training::SessionConfig session;
  // The keys of `onebit inspect` that only this task has.
  std::function<Json(const engine::BatchSizes& batch)> of_task;
  // Memory of a rank of `ranks` at the least: values, gradients, the optimizer's state, activations
  // with the thriftiest memory options. Empty: the recipe does not show it, as its model's shape is
  // that of a checkpoint.
  std::function<int64_t(const engine::BatchSizes& batch, int ranks)> least_bytes = {};
  // What the model takes in a checkpoint at the least. 0: as above.
  int64_t model_file_bytes = 0;
};

struct TaskEntry {
  const char* name;     // the recipe's key "task"
  const char* command;  // trains it
  // Lists the keys of a recipe; the engine's part of what it says.
  engine::EngineConfig (*read)(Keys& recipe);
  RecipeFacts (*inspect)(const Json& recipe, const std::string& place);
};

std::span<const TaskEntry> tasks();

// The task of a recipe; the default one if it names none. Error: an unknown name.
const TaskEntry& task_of(const Json& recipe, const std::string& place);

// Lists the key "task" of a recipe that is given to a command of the task `name`; absent, the
// command's is meant. Another task's recipe is wrong; the command that trains it is named.
void require_task(Keys& recipe, const std::string& name);

}  // namespace onebit::tasks
