#include "onebit/ground/metrics/text_table.h"

#include <gtest/gtest.h>

namespace onebit::metrics {
namespace {

TEST(TextTable, HeaderTitlesAndAlignment) {
  TextTable table({"part", "ms"});
  table.align_right({1});
  table.add_row({"forward", "9.5"});
  table.add_title("network");
  table.add_row({"wait", "120"});
  EXPECT_EQ(table.text(),
            "part      ms\n"
            "-------  ---\n"
            "forward  9.5\n"
            "network\n"
            "wait     120\n");
}

TEST(TextTable, WithoutHeaderIndentedWithoutTrailingSpaces) {
  TextTable table;
  table.add_row({"model", "bert-mini"});
  table.add_row({"rank", ""});
  EXPECT_EQ(table.text(2), "  model  bert-mini\n  rank\n");
}

TEST(TextTable, WidthCountsCharactersNotBytes) {
  EXPECT_EQ(display_width("naïve"), 5u);
  EXPECT_EQ(display_width("nai\xCC\x88ve"), 5u);  // i and a combining diaeresis
  EXPECT_EQ(display_width("Ͱ"), 1u);              // U+0370, just above the combining ones
  TextTable table;
  table.add_row({"é", "1"});
  table.add_row({"ab", "2"});
  EXPECT_EQ(table.text(), "é   1\nab  2\n");
}

}  // namespace
}  // namespace onebit::metrics
