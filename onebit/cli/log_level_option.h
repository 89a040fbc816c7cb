// The option --log-level.
#pragma once

#include <CLI/CLI.hpp>

namespace onebit::cli {

// To the command and all below it.
void add_log_level(CLI::App& command);

}  // namespace onebit::cli
