#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/metric.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onebit::metrics {
namespace {

TEST(MetricJson, ShowsCounts) {
  const auto written = [](const Metric& metric) { return value_in_json(metric).dump(); };
  EXPECT_EQ(written({"masked", 440, true}), "440");
  EXPECT_EQ(written({"accuracy", 1}), "1.0");
  EXPECT_EQ(written({"loss", NAN}), "null");
  EXPECT_TRUE(is_count(Json::parse("440")));
  for (const char* text : {"1.0", "1e3", "null", "\"1\""}) {
    EXPECT_FALSE(is_count(Json::parse(text))) << text;
  }
}

}  // namespace
}  // namespace onebit::metrics
