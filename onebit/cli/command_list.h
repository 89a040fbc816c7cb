// Subcommands of the program. Each add_* declares one with its options, and sets `chosen` to what
// it runs if it is the one given. A command is its file and two lines here.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace onebit::cli {

// The work of the program once the command line is parsed.
using Action = std::function<int()>;

void add_prepare(CLI::App& program, Action& chosen);
void add_pretrain(CLI::App& program, Action& chosen);
void add_evaluate(CLI::App& program, Action& chosen);
void add_convert(CLI::App& program, Action& chosen);
void add_fill(CLI::App& program, Action& chosen);
void add_squad(CLI::App& program, Action& chosen);
void add_classify(CLI::App& program, Action& chosen);
void add_tag(CLI::App& program, Action& chosen);
void add_embed(CLI::App& program, Action& chosen);
void add_tokenize(CLI::App& program, Action& chosen);
void add_inspect(CLI::App& program, Action& chosen);
void add_report(CLI::App& program, Action& chosen);
void add_recipe(CLI::App& program, Action& chosen);
void add_doctor(CLI::App& program, Action& chosen);
void add_launch(CLI::App& program, Action& chosen);
void add_plan(CLI::App& program, Action& chosen);
void add_host(CLI::App& program, Action& chosen);

// In the order of --help.
inline constexpr void (*kCommands[])(CLI::App& program, Action& chosen) = {
    add_prepare, add_pretrain, add_launch,   add_plan,   add_evaluate, add_convert,
    add_fill,    add_squad,    add_classify, add_tag,    add_embed,    add_tokenize,
    add_inspect, add_report,   add_recipe,   add_doctor, add_host,
};

}  // namespace onebit::cli
