// Steps that are rehearsed before the first one.
#include "onebit/training/costs/rehearsal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/json.h"

namespace onebit::costs {
namespace {

constexpr int64_t kElements = 400000;

// Announces all gradients in the middle of `seconds` of computation.
AnnouncingPass computing_for(double seconds, std::atomic<int>& calls) {
  return [=, &calls](const std::function<void(Range)>& ready) {
    ++calls;
    const Stopwatch watch;
    while (watch.seconds() < seconds / 2) {
    }
    ready({0, kElements});
    while (watch.seconds() < seconds) {
    }
    return PassTimes{.backward_seconds = seconds};
  };
}

double rehearsed(double pass_seconds, double packing_seconds, int& calls,
                 double at_most_seconds = 60) {
  double result = 0;
  std::atomic<int> passes = 0;
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    const Context context = Context::cpu(1);
    const comm::Buckets buckets(kElements, kElements);  // four of them
    const double seconds = rehearse(computing_for(pass_seconds, passes), context,
                                    {.communicator = communicator,
                                     .buckets = buckets,
                                     .announced = buckets,
                                     .wire_bytes = [](int64_t elements) { return 2 * elements; },
                                     .packing_seconds = packing_seconds},
                                    communicator, at_most_seconds);
    std::array<double, 1> most{seconds};
    communicator.all_reduce(std::span<double>(most), comm::Reduction::kMax);
    EXPECT_EQ(most[0], seconds) << "every rank has the same";
    if (communicator.rank() == 0) result = seconds;
  });
  calls = passes / 2;
  return result;
}

TEST(Rehearse, TakesAtLeastThePass) {
  int calls = 0;
  EXPECT_GE(rehearsed(0.02, 0, calls), 0.02);
  EXPECT_EQ(calls, 8) << "the first one does not count";
}

TEST(Rehearse, KeepsTheExchangeThreadBusyWithPacking) {
  int calls = 0;
  const double idle = rehearsed(0.002, 0, calls);
  const double busy = rehearsed(0.002, 0.12, calls);  // of each bucket
  // Packing is a number of passes over memory, timed before, maybe while the machine was busier.
  EXPECT_GT(busy - idle, 0.04);
}

TEST(Rehearse, OfALongPassMeasuresThree) {
  int calls = 0;
  EXPECT_GE(rehearsed(0.1, 0, calls, 0.15), 0.1);
  EXPECT_EQ(calls, 4);
}

// How many passes are made, of a step that is predicted to take `seconds`, on rank 1 `elsewhere`.
int passes_of(const char* more, double seconds, std::optional<double> elsewhere = {}) {
  std::atomic<int> passes = 0;
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    const Json recipe = parse_json(
        fmt::format(R"({{"train_batch_size": 8, "run": {{"steps": 9, "bucket_mb": 0.125}},
                        "optimizer": {{"type": "OneBitAdam", "params": {{"freeze_step": 2}}}}{}}})",
                    more),
        "recipe");
    Keys keys(recipe, "recipe");
    const engine::EngineConfig config = engine::parse_engine_config(keys);
    Context context = Context::cpu(1);
    ParameterTable table;
    table.add({.name = "weight", .shape = {400, 1000}});
    table.allocate(Device{}, DType::kF32);
    const double own = communicator.rank() == 1 ? elsewhere.value_or(seconds) : seconds;
    StepCosts costs = {.pass = {.backward_seconds = own}};
    rehearse_steps(costs, computing_for(0.005, passes), context, table,
                   exchange_buckets(table, config, 2), config, communicator);
  });
  return passes / 2;
}

TEST(RehearseSteps, RehearsesWhatOverlaps) {
  EXPECT_EQ(passes_of("", 1), 16) << "either phase";
  EXPECT_EQ(passes_of(R"(, "fp16": {"enabled": true})", 1), 8) << "one bit waits for the end";
  EXPECT_EQ(passes_of("", 0.001), 32) << "much longer than predicted: once more";
  EXPECT_EQ(passes_of("", 11), 0) << "the network decides";
  EXPECT_EQ(passes_of("", 1, 11), 0) << "ranks decide alike";
}

TEST(RehearseSteps, ADelayIsWhatTheStepTakesLongerThanItsParts) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    const engine::EngineConfig config;
    Context context = Context::cpu(1);
    ParameterTable table;
    table.add({.name = "weight", .shape = {400, 1000}});
    table.allocate(Device{}, DType::kF32);
    std::atomic<int> passes = 0;
    StepCosts costs = {.pass = {.backward_seconds = 0.01}};
    rehearse_steps(costs, computing_for(0.05, passes), context, table,
                   exchange_buckets(table, config, 2), config, communicator);
    EXPECT_GE(costs.dense_delay_seconds, 0.04);
    // Other load on the machine disturbs the first rehearsal, which alone would be 0.39 s longer.
    std::atomic<int> disturbed = 0;
    costs = {.pass = {.backward_seconds = 0.01}};
    const auto pass = [&](const std::function<void(Range)>& ready) {
      return computing_for(disturbed < 8 ? 0.4 : 0.01, disturbed)(ready);
    };
    rehearse_steps(costs, pass, context, table, exchange_buckets(table, config, 2), config,
                   communicator);
    EXPECT_LT(costs.dense_delay_seconds, 0.35);
    costs = {.pass = {.backward_seconds = 5}};
    rehearse_steps(costs, computing_for(0.05, passes), context, table,
                   exchange_buckets(table, config, 2), config, communicator);
    EXPECT_EQ(costs.dense_delay_seconds, 0);
  });
}

}  // namespace
}  // namespace onebit::costs
