#include "onebit/program/cluster/link_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::cluster {
namespace {

constexpr size_t kLargestMatrix = 8;  // hosts
constexpr size_t kSlowestShown = 8;   // links

std::string speed_text(const MeasuredLink& link) {
  return fmt::format("{}, {}", rate_text(link.bytes_per_second),
                     metrics::human_duration(link.seconds));
}

std::vector<MeasuredLink> slowest_first(std::vector<MeasuredLink> links) {
  std::stable_sort(links.begin(), links.end(), [](const MeasuredLink& a, const MeasuredLink& b) {
    return a.bytes_per_second < b.bytes_per_second;
  });
  return links;
}

std::vector<std::string> hosts_of(const std::vector<MeasuredLink>& links) {
  std::vector<std::string> hosts;
  const auto add = [&](const std::string& host) {
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
  };
  for (const MeasuredLink& link : links) add(link.from);
  for (const MeasuredLink& link : links) add(link.to);
  return hosts;
}

std::string matrix(const std::vector<MeasuredLink>& links, const std::vector<std::string>& hosts) {
  std::map<std::pair<std::string, std::string>, std::string> cells;
  for (const MeasuredLink& link : links) cells[{link.from, link.to}] = speed_text(link);
  std::vector<std::string> header = {"link from"};
  for (const std::string& host : hosts) header.push_back("to " + host);
  metrics::TextTable table(header);
  for (const std::string& from : hosts) {
    std::vector<std::string> row = {from};
    for (const std::string& to : hosts) {
      const auto cell = cells.find({from, to});
      row.push_back(cell == cells.end() ? "-" : cell->second);
    }
    table.add_row(row);
  }
  return table.text();
}

std::string slowest(const std::vector<MeasuredLink>& links) {
  const std::vector<MeasuredLink> sorted = slowest_first(links);
  metrics::TextTable table({"slowest links", "rate", "latency"});
  for (size_t i = 0; i < std::min(kSlowestShown, sorted.size()); ++i) {
    table.add_row({fmt::format("{} to {}", sorted[i].from, sorted[i].to),
                   rate_text(sorted[i].bytes_per_second),
                   metrics::human_duration(sorted[i].seconds)});
  }
  const MeasuredLink& middle = sorted[sorted.size() / 2];
  table.add_row({fmt::format("the median of {}", sorted.size()), rate_text(middle.bytes_per_second),
                 metrics::human_duration(middle.seconds)});
  return table.text();
}

// What closed links of one host have in common.
struct Closed {
  std::set<std::pair<size_t, int>> ports;  // range, port
  std::vector<std::string> from;
};

}  // namespace

Problems problems_of(const LinkFindings& found, const std::vector<PortRange>& ranges) {
  // `ports` has the closed ports by unreachable host, trying host and reason. `rows` groups trying
  // hosts whose ports are equal.
  std::map<std::tuple<std::string, std::string, std::string>, std::set<std::pair<size_t, int>>>
      ports;
  std::vector<std::tuple<std::string, std::string, std::string>> order;
  for (const ClosedLink& link : found.closed) {
    const auto key = std::tuple(link.to, link.from, link.reason);
    if (!ports.contains(key)) order.push_back(key);
    ports[key].insert({link.range, link.port});
  }
  std::map<std::tuple<std::string, std::string, std::set<std::pair<size_t, int>>>, size_t> known;
  std::vector<std::tuple<std::string, std::string, Closed>> rows;
  for (const auto& key : order) {
    const auto& [to, from, reason] = key;
    const auto [row, is_new] = known.try_emplace(std::tuple(to, reason, ports[key]), rows.size());
    if (is_new) rows.emplace_back(to, reason, Closed{.ports = ports[key], .from = {}});
    std::get<2>(rows[row->second]).from.push_back(from);
  }
  Problems problems = found.failed;
  for (const auto& [to, reason, closed] : rows) {
    std::vector<std::string> at, open;
    for (const auto& [range, port] : closed.ports) {
      at.push_back(fmt::format("{} ({})", port, ranges[range].use));
      if (std::find(open.begin(), open.end(), ranges[range].text()) == open.end()) {
        open.push_back(ranges[range].text());
      }
    }
    problems.push_back(
        {to, fmt::format(
                 "cannot be reached from {} at TCP port {}, {}: open TCP ports {} between all "
                 "hosts, or name fewer networks or another one (docs/cluster.md, \"Interfaces and "
                 "firewalls\")",
                 listed(closed.from), fmt::join(at, " and "), reason, fmt::join(open, " and "))});
  }
  return problems;
}

std::vector<std::string> hosts_to_leave_out(const LinkFindings& found,
                                            const std::vector<std::string>& hosts) {
  std::vector<std::string> left_out;
  const auto is_out = [&](const std::string& host) {
    return std::find(left_out.begin(), left_out.end(), host) != left_out.end();
  };
  for (const Problem& problem : found.failed) left_out.push_back(problem.place);
  for (;;) {
    std::map<std::string, int> counts;
    for (const ClosedLink& link : found.closed) {
      if (is_out(link.from) || is_out(link.to)) continue;
      ++counts[link.from];
      ++counts[link.to];
    }
    const std::string* worst = nullptr;
    for (const std::string& host : hosts) {
      if (counts.contains(host) && (worst == nullptr || counts[host] >= counts[*worst])) {
        worst = &host;
      }
    }
    if (worst == nullptr) return left_out;
    left_out.push_back(*worst);
  }
}

std::string rate_text(double bytes_per_second) {
  const double bits = 8 * bytes_per_second;
  // A value that would be rounded to 1000 gets the next unit.
  if (bits >= 0.9995e9) return fmt::format("{:.3g} Gb/s", bits * 1e-9);
  if (bits >= 0.9995e6) return fmt::format("{:.3g} Mb/s", bits * 1e-6);
  return fmt::format("{:.3g} kb/s", bits * 1e-3);
}

std::string link_table(const std::vector<MeasuredLink>& measured) {
  if (measured.empty()) return "";
  const std::vector<std::string> hosts = hosts_of(measured);
  return hosts.size() <= kLargestMatrix ? matrix(measured, hosts) : slowest(measured);
}

std::string plan_words(const std::vector<MeasuredLink>& measured) {
  double rate = measured.front().bytes_per_second, seconds = 0;
  for (const MeasuredLink& link : measured) {
    rate = std::min(rate, link.bytes_per_second);
    seconds = std::max(seconds, link.seconds);
  }
  std::string bandwidth = rate_text(rate);
  std::erase(bandwidth, ' ');
  return fmt::format("--bandwidth {} --latency {:.0f}us", bandwidth, seconds * 1e6);
}

Problems slow_links(const std::vector<MeasuredLink>& measured) {
  Problems problems;
  if (measured.empty()) return problems;
  const std::vector<MeasuredLink> sorted = slowest_first(measured);
  const double middle = sorted[sorted.size() / 2].bytes_per_second;
  for (const MeasuredLink& link : sorted) {
    if (link.bytes_per_second >= middle / 2) break;
    problems.push_back(
        {link.from, fmt::format("its link to {} transfers {}, the median of all links is {}: look "
                                "for a cable, switch port or interface of a different speed",
                                link.to, rate_text(link.bytes_per_second), rate_text(middle))});
  }
  return problems;
}

}  // namespace onebit::cluster
