// The option --log-level.
#pragma once

#include "onebit/cli/command_line.h"

namespace onebit::cli {

// To the command and all below it.
void add_log_level(Command command);

}  // namespace onebit::cli
