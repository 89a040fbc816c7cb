// The option --log-level.
#pragma once

#include "onebit/program/cli/command_line.h"

namespace onebit::cli {

// Adds the option to the command and all its subcommands.
void add_log_level(Command command);

}  // namespace onebit::cli
