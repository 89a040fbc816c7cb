// What was found out about links, in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/cluster/link_check.h"

namespace onebit::cluster {

// A line for each host and each reason, with the hosts that do not reach it and what to open.
Problems problems_of(const LinkFindings& found, const std::vector<PortRange>& ranges);

// Those of `hosts` without which all others reach each other: the ones with the most closed links,
// among equals the last.
std::vector<std::string> hosts_to_leave_out(const LinkFindings& found,
                                            const std::vector<std::string>& hosts);

// "940 Mb/s", as `onebit plan --bandwidth` takes it without the blank.
std::string rate_text(double bytes_per_second);

// Rows from, columns to, where there are few hosts; else the slowest links. Empty: none was
// measured.
std::string link_table(const std::vector<MeasuredLink>& measured);

// "--bandwidth 940Mb/s --latency 52us" of the slowest link and of the one with the longest way.
std::string plan_words(const std::vector<MeasuredLink>& measured);

// Links with less than half of the middle rate.
Problems slow_links(const std::vector<MeasuredLink>& measured);

}  // namespace onebit::cluster
