#include "onebit/training/training/run_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::training {
namespace {

using ::testing::HasSubstr;

TEST(StepRows, ShowEachPhaseBesideWhatWasExpected) {
  TrainingTotals totals;
  for (const double seconds : {9.0, 0.2, 0.21}) totals.dense_step.add(seconds);
  costs::StepForecast expected;
  expected.dense.step_seconds = 0.25;
  expected.compressed.step_seconds = 0.05;
  Rows rows = step_rows(totals, expected);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].first, "step");
  EXPECT_EQ(rows[0].second, "210 ms (the median of 3), expected 250 ms");
  totals.compressed_step.add(0.06);
  rows = step_rows(totals, expected);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[1].second, HasSubstr("60.0 ms (the median of 1), expected 50.0 ms"));
}

}  // namespace
}  // namespace onebit::training
