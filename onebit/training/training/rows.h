// The rows of the start and end tables of a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace onebit::training {

using Rows = std::vector<std::pair<std::string, std::string>>;

// Prints to standard error.
void print_rows(const Rows& rows);

}  // namespace onebit::training
