#include "onebit/ground/metrics/log_line.h"
#include "onebit/ground/base/json.h"

#include <gtest/gtest.h>

namespace onebit::metrics::log_line {
namespace {

TEST(LogLine, KnowsTheKindOfWhatWasBegun) {
  for (const Kind kind : {Kind::kStep, Kind::kEvaluation, Kind::kStart, Kind::kEnd}) {
    const Json line = begun(kind, 7);
    EXPECT_EQ(kind_of(Json::parse(line.dump())), kind) << line;
    EXPECT_EQ(line.at(kStep), 7);
  }
  EXPECT_EQ(begun(Kind::kStep, 7).dump(), R"({"kind":"step","step":7})");
}

TEST(LogLine, OfNoKindIsNone) {
  for (const char* text : {R"({"step":1,"phase":"dense"})", R"({"kind":"steps"})", R"({"kind":1})",
                           R"(["kind"])", "1", "null"}) {
    EXPECT_EQ(kind_of(Json::parse(text)), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace onebit::metrics::log_line
