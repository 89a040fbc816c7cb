#include "onebit/data/corpus/data_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"

namespace onebit::corpus {
namespace {

using testing::HasSubstr;

TEST(DataJson, RepairsWhatPythonWrites) {
  EXPECT_EQ(repaired_json(R"({"a": NaN, "b": [Infinity,-Infinity, 1e999]})"),
            R"({"a": null, "b": [null    ,null     , null ]})");
  EXPECT_EQ(repaired_json(R"(["\ud83d", "\ude00", "\ud83d\ude00", "\ud83dx\\ud83d"])"),
            R"(["\ufffd", "\ufffd", "\ud83d\ude00", "\ufffdx\\ud83d"])");
}

TEST(DataJson, LeavesTheRestAsItIs) {
  for (const char* text : {R"({"NaN": "Infinity -Infinity 1e999 \" NaN"})",
                           R"([1e308, -0.5, 12345678901234567890, 1e-999])", R"("\ud8)", R"("\)",
                           R"("\u00e9\n)", "-", "", "Na", "{\"a"}) {
    EXPECT_EQ(repaired_json(text), text);
  }
}

TEST(DataJson, ErrorsHaveThePlacesOfTheText) {
  EXPECT_EQ(parse_data_json("{\"a\": NaN}", "f").dump(), "{\"a\":null}");
  EXPECT_THAT(message_of([] { parse_data_json("{\"a\": NaN, b}", "f"); }),
              HasSubstr("f:1:12: not valid JSON"));
  EXPECT_THAT(message_of([] { parse_data_json("{\"a\": 1, \"a\": NaN}", "f"); }),
              HasSubstr("given twice"));
}

}  // namespace
}  // namespace onebit::corpus
