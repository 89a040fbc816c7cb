// Measured parts of a step.
#include "onebit/training/costs/step_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/json.h"

namespace onebit::costs {
namespace {

using ::testing::HasSubstr;

engine::EngineConfig config_of(const char* more, const char* run = "") {
  const Json recipe = parse_json(
      fmt::format(R"({{"train_batch_size": 8, "run": {{"steps": 9, "bucket_mb": 0.125{}}},
                      "optimizer": {{"type": "OneBitAdam", "params": {{"freeze_step": 2}}}}{}}})",
                  run, more),
      "recipe");
  Keys keys(recipe, "recipe");
  engine::EngineConfig config = engine::parse_engine_config(keys);
  keys.check();
  return config;
}

TEST(MeasurePass, TakesTheShortestOfSome) {
  const auto alone = comm::make_single_rank();
  int calls = 0;
  const double seconds[] = {0.1, 0.3, 0.9, 0.2, 0.5, 0.4};
  const PassTimes pass = measure_pass(
      [&](const auto&) {
        return PassTimes{.forward_seconds = 0.01, .backward_seconds = seconds[calls++]};
      },
      *alone);
  EXPECT_EQ(calls, 6) << "the first one does not count";
  EXPECT_EQ(pass.backward_seconds, 0.2);
}

TEST(MeasurePass, MeasuresALongOneOnce) {
  const auto alone = comm::make_single_rank();
  int calls = 0;
  measure_pass(
      [&](const auto&) {
        ++calls;
        return PassTimes{.forward_seconds = 20, .backward_seconds = 40};
      },
      *alone);
  EXPECT_EQ(calls, 2);
}

TEST(StepCosts, AreMeasuredOnAllRanksAlike) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    Context context = Context::cpu(1);
    ParameterTable table;
    table.add({.name = "weight", .shape = {400, 1000}});
    table.allocate(Device{}, DType::kBF16);
    const engine::EngineConfig config = config_of("");
    const auto pass = [](const auto&) {
      return PassTimes{.forward_seconds = 1, .backward_seconds = 2, .ready = {{{0, 400000}, 1.5}}};
    };
    const ExchangeBuckets buckets = exchange_buckets(table, config, 2);
    const StepCosts costs =
        measure_step_costs(context, pass, table, buckets, config.wire, communicator);
    for (const double seconds :
         {costs.update_seconds, costs.compressed_update_seconds, costs.latency_seconds,
          costs.dense.wire_seconds, costs.dense.processor_seconds, costs.compressed.wire_seconds,
          costs.compressed.processor_seconds, costs.local.processor_seconds}) {
      EXPECT_GT(seconds, 0);
      EXPECT_LT(seconds, 60);
      std::array<double, 1> most{seconds};
      communicator.all_reduce(std::span<double>(most), comm::Reduction::kMax);
      EXPECT_EQ(most[0], seconds);
    }
    const StepForecast expected = forecast(costs, buckets, config, 2);
    EXPECT_GE(expected.dense.step_seconds, 3 + 1 + 2 + costs.update_seconds);
    EXPECT_GT(expected.dense.exchange_seconds, 0);
    EXPECT_GT(expected.compressed.exchange_seconds, 0);
    EXPECT_EQ(expected.local.exchange_seconds, 0);
    EXPECT_LT(costs.local.processor_seconds, costs.compressed.processor_seconds);
  });
}

// The compressed exchange then knows the scale of the gradients only after the backward pass.
TEST(Forecast, ExactClippingAndLossScalingKeepCompressedBucketsBack) {
  ParameterTable table;
  table.add({.name = "weight", .shape = {400, 1000}});
  StepCosts costs;
  costs.pass = {.forward_seconds = 1, .backward_seconds = 2, .ready = {{{0, 400000}, 0.5}}};
  costs.dense.wire_seconds = costs.compressed.wire_seconds = 0.01;
  const auto waiting = [&](const char* more, const char* run = "") {
    const engine::EngineConfig config = config_of(more, run);
    const StepForecast expected = forecast(costs, exchange_buckets(table, config, 2), config, 1);
    return std::pair(expected.dense.waiting_seconds > 0, expected.compressed.waiting_seconds > 0);
  };
  EXPECT_EQ(waiting(""), std::pair(false, false));
  EXPECT_EQ(waiting(R"(, "gradient_clipping": 1.0)"), std::pair(false, false));
  EXPECT_EQ(waiting(R"(, "gradient_clipping": 1.0)", R"(, "clip": "exact")"),
            std::pair(false, true));
  EXPECT_EQ(waiting(R"(, "fp16": {"enabled": true})"), std::pair(false, true));
}

// Each phase is computed from the buckets that it sends.
TEST(Forecast, CountsTheBucketsOfEachPhase) {
  ParameterTable table;
  table.add({.name = "weight", .shape = {64, 1 << 20}});  // 32768 blocks
  StepCosts costs;
  costs.pass = {.forward_seconds = 1, .backward_seconds = 2, .ready = {}};
  costs.dense.wire_seconds = costs.compressed.wire_seconds = 1;
  const engine::EngineConfig config = config_of("");  // buckets of 16 blocks
  const ExchangeBuckets buckets = exchange_buckets(table, config, 8);
  EXPECT_EQ(buckets.dense.count(), 2048);
  EXPECT_EQ(buckets.compressed.count(), 17);
  const StepForecast expected = forecast(costs, buckets, config, 1);
  EXPECT_DOUBLE_EQ(expected.dense.exchange_seconds, 2048);
  EXPECT_NEAR(expected.compressed.exchange_seconds, 32768.0 / (8 * 249), 1e-9);
}

}  // namespace
}  // namespace onebit::costs
