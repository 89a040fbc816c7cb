#include "onebit/program/cluster/problems.h"

#include <fmt/format.h>

#include <map>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::cluster {
namespace {

constexpr size_t kMostAlike = 4;  // lines of the same problem. A thousand hosts may have it
constexpr size_t kMostNamed = 3;
constexpr size_t kMostRows = 40;

}  // namespace

std::string table_of(const Problems& problems) {
  std::map<std::string, std::vector<std::string>> places;  // of the same problem
  for (const Problem& problem : problems) places[problem.what].push_back(problem.place);
  metrics::TextTable table;
  size_t rows = 0;
  for (const Problem& problem : problems) {
    const std::vector<std::string>& alike = places[problem.what];
    const bool are_many = alike.size() > kMostAlike;
    if ((are_many && problem.place != alike.front()) || ++rows > kMostRows) continue;
    table.add_row({are_many ? fmt::format("{} ({} in all)", listed(alike, kMostNamed), alike.size())
                            : problem.place,
                   problem.what});
  }
  if (rows > kMostRows) table.add_title(fmt::format("and {} more", rows - kMostRows));
  return table.text(2);
}

void require_none(const Problems& problems, const std::string& title) {
  if (problems.empty()) return;
  std::string text = table_of(problems);
  text.pop_back();
  fail("{}\n{}", title, text);
}

}  // namespace onebit::cluster
