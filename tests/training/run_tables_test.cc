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

TEST(AttentionRows, NameThePlainKernelOfACudaDevice) {
  const Device cuda{DeviceType::kCuda, 0};
  for (const int64_t head_size : {32, 64, 128}) {
    for (const DType compute : {DType::kBF16, DType::kF16}) {
      EXPECT_TRUE(attention_rows(cuda, compute, head_size).empty()) << head_size;
    }
  }
  const Rows f32 = attention_rows(cuda, DType::kF32, 64);
  ASSERT_EQ(f32.size(), 1u);
  EXPECT_EQ(f32[0].first, "attention");
  EXPECT_THAT(f32[0].second, HasSubstr("plain kernel (f32)"));
  EXPECT_THAT(f32[0].second, HasSubstr("set bf16.enabled to true"));
  const Rows head = attention_rows(cuda, DType::kBF16, 96);
  ASSERT_EQ(head.size(), 1u);
  EXPECT_THAT(head[0].second, HasSubstr("plain kernel (head size 96)"));
  EXPECT_THAT(head[0].second, HasSubstr("32, 64 and 128"));
  EXPECT_TRUE(attention_rows(Device{}, DType::kF32, 96).empty());
}

}  // namespace
}  // namespace onebit::training
