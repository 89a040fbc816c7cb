// The subcommands of `onebit search`, one source file each.
#pragma once

#include <string>
#include <vector>

#include "onebit/apps/embed/encoder.h"
#include "onebit/training/commands/command_line.h"

namespace onebit::search {

// Declares the group `onebit search`.
void add_search(commands::Command program, commands::Action& chosen);
void add_search_index(commands::Command search, commands::Action& chosen);
void add_search_query(commands::Command search, commands::Action& chosen);
void add_search_export(commands::Command search, commands::Action& chosen);

// Of length 1, of a text after the text of a prompt. Both vectors of one text by one model have a
// product of 1, up to rounding.
std::vector<float> unit_vector(embed::Encoder& encoder, const std::string& prompt,
                               const std::string& text);

}  // namespace onebit::search
