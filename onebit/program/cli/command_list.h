// Subcommands of the program. Each add_* declares one with its options and, if that one is given,
// sets `chosen` to its work. A new command needs its file, two lines here
// and its name in CMakeLists.txt.
#pragma once

#include <functional>

#include "onebit/program/cli/command_line.h"

namespace onebit::cli {

// The work of the program after the command line is parsed; returns the exit status.
using Action = std::function<int()>;

void add_prepare(Command program, Action& chosen);
void add_pretrain(Command program, Action& chosen);
void add_evaluate(Command program, Action& chosen);
void add_convert(Command program, Action& chosen);
void add_fill(Command program, Action& chosen);
void add_squad(Command program, Action& chosen);
void add_classify(Command program, Action& chosen);
void add_tag(Command program, Action& chosen);
void add_embed(Command program, Action& chosen);
void add_tokenize(Command program, Action& chosen);
void add_inspect(Command program, Action& chosen);
void add_report(Command program, Action& chosen);
void add_recipe(Command program, Action& chosen);
void add_doctor(Command program, Action& chosen);
void add_launch(Command program, Action& chosen);
void add_plan(Command program, Action& chosen);
void add_host(Command program, Action& chosen);

// In the order of --help.
inline constexpr void (*kCommands[])(Command program, Action& chosen) = {
    add_prepare, add_pretrain, add_launch,   add_plan,   add_evaluate, add_convert,
    add_fill,    add_squad,    add_classify, add_tag,    add_embed,    add_tokenize,
    add_inspect, add_report,   add_recipe,   add_doctor, add_host,
};

}  // namespace onebit::cli
