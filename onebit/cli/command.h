// Subcommands of the program. Each add_* declares one: its options, and what to run when it is
// chosen. The chosen one's exit status comes back through `status`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace onebit::cli {

// What the program does once the command line is understood.
using Action = std::function<int()>;

void add_prepare(CLI::App& program, Action& chosen);
void add_pretrain(CLI::App& program, Action& chosen);
void add_evaluate(CLI::App& program, Action& chosen);
void add_convert(CLI::App& program, Action& chosen);
void add_fill(CLI::App& program, Action& chosen);
void add_squad(CLI::App& program, Action& chosen);
void add_tokenize(CLI::App& program, Action& chosen);
void add_inspect(CLI::App& program, Action& chosen);

}  // namespace onebit::cli
