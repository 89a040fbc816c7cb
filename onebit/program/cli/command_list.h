// Subcommands of the program. Each add_* declares one with its options and, if that one is given,
// sets `chosen` to its work. A new command needs its file, two lines here and its name in
// CMakeLists.txt. The commands of the applications are in the list of tasks.
#pragma once

#include "onebit/apps/pretrain/pretrain_command.h"
#include "onebit/program/inspect/task_list.h"
#include "onebit/program/search/search_command.h"
#include "onebit/training/commands/command_line.h"

namespace onebit::cli {

void add_prepare(commands::Command program, commands::Action& chosen);
void add_convert(commands::Command program, commands::Action& chosen);
void add_tokenize(commands::Command program, commands::Action& chosen);
void add_inspect(commands::Command program, commands::Action& chosen);
void add_report(commands::Command program, commands::Action& chosen);
void add_recipe(commands::Command program, commands::Action& chosen);
void add_doctor(commands::Command program, commands::Action& chosen);
void add_launch(commands::Command program, commands::Action& chosen);
void add_plan(commands::Command program, commands::Action& chosen);
void add_host(commands::Command program, commands::Action& chosen);
void add_serve(commands::Command program, commands::Action& chosen);

// The groups of commands that tasks have, in the order of their list.
inline void add_tasks(commands::Command program, commands::Action& chosen) {
  for (const inspect::TaskKind& task : inspect::tasks()) {
    if (task.add_commands != nullptr) task.add_commands(program, chosen);
  }
}

// In the order of --help.
inline constexpr void (*kCommands[])(commands::Command program, commands::Action& chosen) = {
    add_prepare,
    pretrain::add_pretrain,
    add_launch,
    add_plan,
    pretrain::add_evaluate,
    add_convert,
    pretrain::add_fill,
    add_tasks,
    search::add_search,
    add_serve,
    add_tokenize,
    add_inspect,
    add_report,
    add_recipe,
    add_doctor,
    add_host,
};

}  // namespace onebit::cli
