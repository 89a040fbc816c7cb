#include "onebit/ground/metrics/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace onebit::metrics {
namespace {

using ::testing::ElementsAre;

TEST(Metric, InWordsTheOneThatDecidesLeads) {
  const std::vector<Metric> record = {{"accuracy", 0.5}, {"f1", 0.25}, {"words", 144, true}};
  EXPECT_EQ(text_of(record, "f1"), "f1 0.2500, accuracy 0.5000, words 144");
  EXPECT_EQ(text_of(record, "accuracy"), "accuracy 0.5000, f1 0.2500, words 144");
}

TEST(Metric, ThatIsNotANumberSaysWhy) {
  EXPECT_EQ(nan_note_of({{"mse", 0.5}, {"pearson", 1}}), "");
  EXPECT_EQ(nan_note_of({{"mse", 0.5}, {"pearson", std::nan("")}}).substr(0, 4), "nan:");
  EXPECT_EQ(nan_note_of({{"loss", std::nan("")}, {"f1", 0.5}}), "");
  EXPECT_EQ(nan_note_of({{"pearson", std::nan("")}, {"mse", std::nan("")}}), "");
}

TEST(Metric, NamesOfSeveralListsComeOnce) {
  constexpr MetricName kOne[] = {{"f1"}, {"loss", true}}, kOther[] = {{"accuracy"}, {"f1"}};
  EXPECT_THAT(distinct_names({kOne, kOther}), ElementsAre("f1", "loss", "accuracy"));
}

}  // namespace
}  // namespace onebit::metrics
