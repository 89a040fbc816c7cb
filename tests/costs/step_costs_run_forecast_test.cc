#include "onebit/training/costs/step_costs.h"

#include <gtest/gtest.h>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/optim/adam.h"

namespace onebit::costs {
namespace {

StepForecast steps() {
  StepForecast step;
  step.dense.step_seconds = 10;
  step.compressed.step_seconds = 3;
  step.local.step_seconds = 2;
  return step;
}

TEST(RunForecast, AddsUpEachKindOfStep) {
  EXPECT_DOUBLE_EQ(seconds_of({.dense = 4, .compressed = 5, .both = 6, .local = 7}, steps()),
                   4 * 10 + 5 * 3 + 6 * (10 + 1) + 7 * 2);
}

TEST(RunForecast, CountsFromWhereARunIsResumed) {
  const auto onebit = optim::onebit_adam_recipe({.freeze = {.step = 20}});
  const RunForecast whole = forecast_run(*onebit, {}, steps(), 2, 0, 100);
  EXPECT_DOUBLE_EQ(whole.seconds, 20 * 10 + 80 * 3);
  const RunForecast rest = forecast_run(*onebit, {}, steps(), 2, 15, 100);
  EXPECT_EQ(rest.updates.dense, 5);
  EXPECT_EQ(rest.updates.compressed, 80);
  EXPECT_DOUBLE_EQ(rest.seconds, 5 * 10 + 80 * 3);
  EXPECT_EQ(forecast_run(*onebit, {}, steps(), 2, 30, 100).updates.dense, 0);
}

TEST(RunForecast, OneRankExchangesNothing) {
  const auto onebit = optim::onebit_adam_recipe({.freeze = {.step = 20}});
  EXPECT_DOUBLE_EQ(forecast_run(*onebit, {}, steps(), 1, 40, 100).seconds, 60 * 10);
}

}  // namespace
}  // namespace onebit::costs
