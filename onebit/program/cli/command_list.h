// Subcommands of the program. Each add_* declares one with its options and, if that one is given,
// sets `chosen` to its work. A new command needs its file, two lines here
// and its name in CMakeLists.txt.
#pragma once

#include "onebit/training/commands/command_line.h"

namespace onebit::cli {

void add_prepare(commands::Command program, commands::Action& chosen);
void add_pretrain(commands::Command program, commands::Action& chosen);
void add_evaluate(commands::Command program, commands::Action& chosen);
void add_convert(commands::Command program, commands::Action& chosen);
void add_fill(commands::Command program, commands::Action& chosen);
void add_squad(commands::Command program, commands::Action& chosen);
void add_classify(commands::Command program, commands::Action& chosen);
void add_tag(commands::Command program, commands::Action& chosen);
void add_embed(commands::Command program, commands::Action& chosen);
void add_tokenize(commands::Command program, commands::Action& chosen);
void add_inspect(commands::Command program, commands::Action& chosen);
void add_report(commands::Command program, commands::Action& chosen);
void add_recipe(commands::Command program, commands::Action& chosen);
void add_doctor(commands::Command program, commands::Action& chosen);
void add_launch(commands::Command program, commands::Action& chosen);
void add_plan(commands::Command program, commands::Action& chosen);
void add_host(commands::Command program, commands::Action& chosen);

// In the order of --help.
inline constexpr void (*kCommands[])(commands::Command program, commands::Action& chosen) = {
    add_prepare, add_pretrain, add_launch,   add_plan,   add_evaluate, add_convert,
    add_fill,    add_squad,    add_classify, add_tag,    add_embed,    add_tokenize,
    add_inspect, add_report,   add_recipe,   add_doctor, add_host,
};

}  // namespace onebit::cli
