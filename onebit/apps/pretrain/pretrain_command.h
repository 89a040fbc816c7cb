// The commands of pre-training. Each add_* declares one with its options and, if that one is given,
// sets `chosen` to its work.
#pragma once

#include "onebit/training/commands/command_line.h"

namespace onebit::pretrain {

void add_pretrain(commands::Command program, commands::Action& chosen);
void add_evaluate(commands::Command program, commands::Action& chosen);
void add_fill(commands::Command program, commands::Action& chosen);

}  // namespace onebit::pretrain
