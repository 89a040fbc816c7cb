#include "onebit/training/training/rows.h"

#include <fmt/format.h>

#include "onebit/ground/base/log.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::training {

void print_rows(const Rows& rows) {
  metrics::TextTable table;
  for (const auto& [name, value] : rows) table.add_row({name, value});
  show(fmt::format("{}\n", table.text(2)));
}

}  // namespace onebit::training
