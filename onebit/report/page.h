// The report of one or several runs: one HTML file that needs nothing else.
#pragma once

#include <string>
#include <vector>

#include "onebit/report/run_history.h"

namespace onebit::report {

// Curves with phases marked, findings, start and end tables, expected against measured steps and
// the recipe; of several runs the curves lie in the same charts, beside a table that compares them.
// Errors: no run.
std::string html_page(const std::vector<RunHistory>& runs);

}  // namespace onebit::report
