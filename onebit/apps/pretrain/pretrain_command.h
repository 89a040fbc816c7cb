// The commands of pre-training. Each add_* declares one with its options and, if that one is given,
// sets `chosen` to its work.
#pragma once

#include <optional>
#include <string>

#include "onebit/training/commands/command_line.h"

namespace onebit::pretrain {

void add_pretrain(commands::Command program, commands::Action& chosen);
void add_evaluate(commands::Command program, commands::Action& chosen);
void add_fill(commands::Command program, commands::Action& chosen);

// The two forms in which `onebit pretrain` takes stores, as the type names of its options, by which
// `onebit launch` knows them. If a folder exists under the whole text, the text is its path,
// whatever its form.
inline constexpr const char* kWeightedStore = "STORE[=WEIGHT]";
inline constexpr const char* kNamedStore = "[NAME=]STORE";

// The folder in a value of an option with this type name, or nothing if the type is neither of
// these. A text with an = that is no weight is a path: it may exist where the command will run.
// Errors: a weight that is no number above 0, nothing before or behind the =.
std::optional<std::string> folder_of_store(const std::string& type, const std::string& text);

}  // namespace onebit::pretrain
