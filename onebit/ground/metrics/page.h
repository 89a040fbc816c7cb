// The report of one or several runs: one self-contained HTML file.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/metrics/run_history.h"

namespace onebit::metrics {

// Curves with marked phases, findings, start and end tables, expected and measured step times, and
// the recipe. Several runs share the charts, and a table compares them. Error: no run.
std::string html_page(const std::vector<RunHistory>& runs);

}  // namespace onebit::metrics
