#include "onebit/program/cluster/problems.h"

#include "onebit/ground/base/error.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::cluster {

std::string table_of(const Problems& problems) {
  metrics::TextTable table;
  for (const Problem& problem : problems) table.add_row({problem.place, problem.what});
  return table.text(2);
}

void require_none(const Problems& problems, const std::string& title) {
  if (problems.empty()) return;
  std::string text = table_of(problems);
  text.pop_back();
  fail("{}\n{}", title, text);
}

}  // namespace onebit::cluster
