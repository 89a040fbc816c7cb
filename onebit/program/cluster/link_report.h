// Reports of what was found out about links.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/program/cluster/link_check.h"

namespace onebit::cluster {

// One problem for each unreachable host and each reason, with the hosts that do not reach it and
// the ports to open.
Problems problems_of(const LinkFindings& found, const std::vector<PortRange>& ranges);

// The hosts without which all others reach each other: those with the most closed links, among
// equals the last in `hosts`.
std::vector<std::string> hosts_to_leave_out(const LinkFindings& found,
                                            const std::vector<std::string>& hosts);

// "940 Mb/s"; without the space, a value of `onebit plan --bandwidth`.
std::string rate_text(double bytes_per_second);

// A matrix (row: from, column: to) for few hosts, otherwise the slowest links. Empty if none was
// measured.
std::string link_table(const std::vector<MeasuredLink>& measured);

// "--bandwidth 940Mb/s --latency 52us": the lowest bandwidth and the highest latency of all links.
std::string plan_words(const std::vector<MeasuredLink>& measured);

// Links with less than half of the median rate.
Problems slow_links(const std::vector<MeasuredLink>& measured);

}  // namespace onebit::cluster
