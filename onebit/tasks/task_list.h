// Every task that a recipe may name, one line each.
#pragma once

#include <functional>
#include <string>

#include "onebit/engine/config.h"

namespace onebit::tasks {

// The part of `onebit inspect` about a recipe.
struct RecipeFacts {
  engine::EngineConfig engine;
  std::function<Json(const engine::BatchSizes& batch)> of_task;  // keys that only this task has
};

struct TaskEntry {
  const char* name;     // the recipe's key "task"
  const char* command;  // trains it
  RecipeFacts (*inspect)(const Json& recipe, const std::string& place);
};

// The task of a recipe; the default one if it names none. Error: an unknown name.
const TaskEntry& task_of(const Json& recipe, const std::string& place);

// Reads the key "task" of a recipe that is given to a command of the task `name`; without the key,
// it is taken to be that task's. Error: another task's recipe; the message names the command that
// trains it.
void require_task(JsonReader& recipe, const std::string& name);

}  // namespace onebit::tasks
