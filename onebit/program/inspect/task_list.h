// Every task that a recipe may name, one line each.
#pragma once

#include <memory>
#include <span>

#include "onebit/training/commands/command_line.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::inspect {

struct TaskKind {
  const char* name;  // one of training::kTaskNames
  const char* page;  // in docs/
  // Lists the keys of a recipe, and returns the engine's part of it.
  engine::EngineConfig (*read)(Keys& recipe);
  training::RecipeFacts (*inspect)(const Recipe& recipe);
  training::MakeTask make;
  // Declares the group of its commands. The chosen one's work is put into `chosen`. Null: the
  // program has its commands in a place of their own.
  void (*add_commands)(commands::Command program, commands::Action& chosen) = nullptr;
};

// In the order of training::kTaskNames.
std::span<const TaskKind> tasks();

// Returns the task that a recipe names, or the default one. Error: an unknown name.
const TaskKind& task_of(const Recipe& recipe);

// Makes the task that the recipe of `run` names, of any kind (training::MakeTask).
std::unique_ptr<training::Task> make_task(Context& context, const training::RunOptions& run,
                                          const training::TaskInputs& inputs,
                                          const training::Connection& connection);

}  // namespace onebit::inspect
