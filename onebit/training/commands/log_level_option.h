// The option --log-level.
#pragma once

#include "onebit/training/commands/command_line.h"

namespace onebit::commands {

// Adds the option to the command and all its subcommands.
void add_log_level(Command command);

}  // namespace onebit::commands
