// The rows of the tables at the start and at the end of a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace onebit::training {

using Rows = std::vector<std::pair<std::string, std::string>>;

// To standard error.
void print_rows(const Rows& rows);

}  // namespace onebit::training
