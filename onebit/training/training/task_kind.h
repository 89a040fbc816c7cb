// The kinds of tasks that a recipe may name, and the facts about a recipe that are known before it
// runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "onebit/exchange/engine/config.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/training/training/session_config.h"
#include "onebit/training/training/task.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::training {

// The values of the recipe's key "task", one for each application.
inline constexpr const char* kTaskNames[] = {"pretrain", "squad", "classify", "tag", "embed"};

// The facts about a recipe that are known before it runs.
struct RecipeFacts {
  engine::EngineConfig engine;
  SessionConfig session;
  // The keys of `onebit inspect` that only this task has.
  std::function<Json(const engine::BatchSizes& batch)> of_task;
  // The minimum memory per rank with `ranks` ranks: values, gradients, the optimizer's state,
  // activations with the most economical memory options. Empty: unknown from the recipe, because
  // its model's shape is a checkpoint's.
  std::function<int64_t(const engine::BatchSizes& batch, int ranks)> least_bytes = {};
  // The minimum size of the model in a checkpoint. 0: unknown, as above.
  int64_t model_file_bytes = 0;
};

// Makes a task from a recipe, which is read once, and from the inputs. The task trains on the ranks
// of `connection`. Collective. Error: all faults of the recipe, in which another task's recipe is
// one.
using MakeTask = std::unique_ptr<Task> (*)(Context& context, const RunOptions& options,
                                           const TaskInputs& inputs, const Connection& connection);

// The command that trains a task: "onebit squad train".
std::string training_command(const std::string& task);

// Lists the key "task" and returns its value. `name` is its default.
std::string read_task_name(Keys& recipe, const std::string& name);
// Lists the key "task" of a recipe passed to a command of the task `name`, which is its default.
// Called before the other keys are listed, which would all be faults in another task's recipe.
// Error: the recipe is of another task, with the command that trains it.
void require_task(Keys& recipe, const std::string& name);

}  // namespace onebit::training
