#include "onebit/exchange/engine/engine.h"

#include <gtest/gtest.h>

#include <mutex>

#include "onebit/exchange/comm/thread_communicator.h"
#include "tests/base/message_of.h"
#include "tests/engine/toy_model.h"

namespace onebit::engine {
namespace {

TEST(Engine, TwoRanksEqualOneRankWithAccumulation) {
  for (const char* optimizer : {toy::kAdam, toy::kLamb}) {
    const ToyTrace one = train_toy(toy_config(optimizer, 8, 4), 1, 15);
    const ToyTrace two = train_toy(toy_config(optimizer, 8, 4), 2, 15);
    for (size_t step = 0; step < one.losses.size(); ++step) {
      EXPECT_NEAR(one.losses[step], two.losses[step], 1e-5 * one.losses[step]) << step;
    }
    for (size_t i = 0; i < one.values.size(); ++i) EXPECT_NEAR(one.values[i], two.values[i], 1e-5);
  }
}

TEST(Engine, OverlapChangesNothing) {
  EngineConfig late = toy_config(toy::kAdam, 6, 2);
  late.run.overlap = false;
  const ToyTrace overlapped = train_toy(toy_config(toy::kAdam, 6, 2), 3, 8);
  EXPECT_EQ(overlapped.values, train_toy(late, 3, 8).values);
  EngineConfig late_onebit = toy_config(toy::kOneBit, 6, 2);
  late_onebit.run.overlap = false;
  EXPECT_EQ(train_toy(toy_config(toy::kOneBit, 6, 2), 3, 18).values,
            train_toy(late_onebit, 3, 18).values);
}

// A caller's learning rates count like a schedule's, in both phases.
TEST(Engine, ACallerMayGiveTheLearningRateOfAnUpdate) {
  const char* doubled = R"({"type": "OneBitAdam", "params": {"lr": 2e-3, "freeze_step": 10}})";
  for (const int world : {1, 2}) {
    const ToyTrace expected = train_toy(toy_config(toy::kOneBit, 6, 3), world, 16);
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      ToyRun run(toy_config(doubled, 6, 3), communicator);
      for (int step = 0; step < 16; ++step) run.step(false, 1e-3);
      EXPECT_EQ(run.values(), expected.values);
      EXPECT_EQ(run.outcome().learning_rate, 1e-3);
      run.step(false, 0.0);
      EXPECT_EQ(run.values(), expected.values);
    });
  }
}

TEST(Engine, CompressedPhaseLearnsOnAFractionOfTheBytes) {
  const ToyTrace trace = train_toy(toy_config(toy::kOneBit, 6, 3), 2, 40);
  // Two batches take turns.
  EXPECT_LT(trace.losses[38], 0.5 * trace.losses[0]);
  EXPECT_LT(trace.losses[39], 0.5 * trace.losses[1]);
  EXPECT_EQ(trace.outcomes[8].phase, optim::Phase::kWarmup);
  EXPECT_EQ(trace.outcomes[12].phase, optim::Phase::kCompressed);
  EXPECT_GT(trace.outcomes[8].wire_bytes, trace.outcomes[8].wire_bytes_dense16);
  EXPECT_LT(trace.outcomes[12].wire_bytes, trace.outcomes[12].wire_bytes_dense16 / 5);
}

TEST(Engine, TheWarmupSendsWhatA16BitAllReduceSends) {
  const auto bytes_of_a_step = [](const std::string& more) {
    const ToyTrace trace = train_toy(toy_config(toy::kOneBit, 6, 3, more), 2, 2);
    EXPECT_TRUE(std::isfinite(trace.losses[1]));
    return static_cast<double>(trace.outcomes[1].wire_bytes) /
           static_cast<double>(trace.outcomes[1].wire_bytes_dense16);
  };
  // Decisions are sent in addition.
  EXPECT_NEAR(bytes_of_a_step(R"(, "bf16": {"enabled": true})"), 1, 0.02);
  EXPECT_NEAR(bytes_of_a_step(R"(, "bf16": {"enabled": true}, "communication_data_type": "fp32")"),
              2, 0.02);
}

TEST(Engine, WarnsOfF16OnTheWireWithoutALossScale) {
  const auto warning_of = [](const std::string& more, int world) {
    testing::internal::CaptureStderr();
    train_toy(toy_config(toy::kAdam, 2, 1, more), world, 0);
    return testing::internal::GetCapturedStderr();
  };
  const char* half = R"(, "communication_data_type": "fp16")";
  EXPECT_NE(warning_of(half, 2).find("communication_data_type is fp16"), std::string::npos);
  EXPECT_EQ(warning_of(half, 1), "");
  EXPECT_EQ(warning_of(R"(, "fp16": {"enabled": true})", 2), "");
}

TEST(Engine, ReportsWhichRangesABackwardPassHasLeftOut) {
  for (const char* optimizer : {toy::kAdam, toy::kOneBit}) {
    const EngineConfig config = toy_config(optimizer, 2, 1);
    const int frozen = optimizer == toy::kOneBit ? 10 : 0;
    std::string message;
    comm::run_thread_world(2, [&](comm::Communicator& communicator) {
      ToyRun run(config, communicator);
      for (int step = 0; step < frozen; ++step) run.step();
      run.engine().backward([&](const BackwardInput& input) {
        input.gradients_ready({ToyModel::kInputs, run.table().size_elements()});
        input.gradients_ready({2048, ToyModel::kInputs});
      });
      const std::string own = message_of([&] { run.engine().step(); });
      if (communicator.rank() == 0) message = own;
    });
    EXPECT_NE(message.find("gradients_ready was not called for the whole gradient"),
              std::string::npos)
        << message;
  }
}

TEST(Engine, WatchesWhatAnUpdateDoesToTheValues) {
  EngineConfig config = toy_config(toy::kAdam, 4, 2);
  config.run.watch_every = 2;
  config.run.watch_tensors = "weight";
  const ToyTrace trace = train_toy(config, 2, 4);
  EXPECT_FALSE(trace.outcomes[0].watch);
  ASSERT_TRUE(trace.outcomes[1].watch);
  const UpdateSummary& watch = *trace.outcomes[3].watch;
  // Adam moves no value by much more than the learning rate, and some value by almost all of it.
  EXPECT_GT(watch.largest_update, 0.5);
  EXPECT_LT(watch.largest_update, 2);
  EXPECT_FALSE(watch.updated_tensor.empty());
  EXPECT_GT(watch.largest_value, 0);
  EXPECT_NE(watch.largest_tensor.find("weight"), std::string::npos);
}

// A step that ends local updates makes all of them: it counts in units of the sum of their rates.
TEST(Engine, WatchesAnExchangeInUnitsOfTheRatesItGathers) {
  EngineConfig config = toy_config(
      R"({"type": "ZeroOneAdam", "params": {"lr": 1e-4, "var_freeze_step": 8,
          "var_update_scaler": 4, "local_step_scaler": 8, "local_step_clipper": 8}})",
      8, 4);
  config.run.watch_every = 1;
  double gathered = 0;
  for (const StepOutcome& outcome : train_toy(config, 2, 60).outcomes) {
    EXPECT_LT(outcome.watch->largest_update, 4);
    gathered = std::max(gathered, outcome.gathered_rate);
  }
  EXPECT_NEAR(gathered, 8e-4, 1e-9);
}

// The compressed phase moves as far as Adam and in the same direction. One rank and the warm-up do
// so exactly. With clipping by bucket each rank clips its own gradient: this equals Adam's clipping
// if their norms are equal, as for ranks that see all samples here.
TEST(Engine, UpdatesFollowAdamsThroughTheCompressedPhase) {
  constexpr int64_t kAll = ToyRun::kSamples;
  for (const auto& [world, micro, more, more_run] :
       {std::tuple(1, int64_t{4}, "", ""), std::tuple(2, int64_t{4}, "", ""),
        std::tuple(4, int64_t{4}, "", ""), std::tuple(2, int64_t{4}, toy::kClip, toy::kExactly),
        std::tuple(2, kAll, toy::kClip, "")}) {
    // With this learning rate, the model still learns at the end.
    EngineConfig config = toy_config(
        R"({"type": "OneBitAdam", "params": {"lr": 1e-4, "weight_decay": 0.01, "freeze_step": 60}})",
        micro * world, micro, more, more_run);
    config.run.watch_every = 30;
    config.run.watch_adam = true;
    config.run.steps = 180;
    const ToyTrace trace = train_toy(config, world, 180);
    // The traffic of the comparison, dense in f32, does not count as the optimizer's.
    const StepOutcome& compressed = trace.outcomes[100];
    EXPECT_LE(compressed.wire_bytes, compressed.wire_bytes_dense16 / 5);
    EXPECT_GE(compressed.watch_bytes, compressed.wire_bytes_dense16);
    for (const int step : {30, 60, 90, 120, 150, 180}) {
      ASSERT_TRUE(trace.outcomes[static_cast<size_t>(step - 1)].adam);
      const auto [distance, cosine] = *trace.outcomes[static_cast<size_t>(step - 1)].adam;
      const bool exact = step <= 60;
      // Without noise between samples it moves too far, and just as far with exact clipping.
      const double tolerance = micro == kAll ? 0.2 : 0.1;
      EXPECT_NEAR(distance, 1, exact ? 1e-3 : tolerance) << step << " of " << world << more;
      EXPECT_GT(cosine, exact ? 0.999 : 0.9) << step << " of " << world << more;
    }
  }
}

// Updates of 0/1 Adam: dense, at one bit, local. A comparison between two exchanges sees the
// updates of rank 0 alone. A comparison after an exchange sees the updates of all ranks.
TEST(Engine, UpdatesFollowAdamsBetweenExchangesToo) {
  const char* optimizer =
      R"({"type": "ZeroOneAdam", "params": {"lr": 1e-4, "weight_decay": 0.01, "var_freeze_step": 60,
          "var_update_scaler": 20, "local_step_scaler": 30, "local_step_clipper": 4}})";
  for (const auto& [world, every] : {std::pair(2, 30), std::pair(4, 30), std::pair(2, 36)}) {
    EngineConfig config = toy_config(optimizer, 4 * world, 4);
    config.run.watch_every = every;
    config.run.watch_adam = true;
    config.run.steps = 180;
    std::vector<StepOutcome> outcomes;
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      ToyRun run(config, communicator);
      for (int step = 0; step < 180; ++step) {
        run.step();
        if (communicator.rank() == 0) outcomes.push_back(run.outcome());
      }
    });
    for (int step = every; step <= 180; step += every) {
      const auto& adam = outcomes[static_cast<size_t>(step - 1)].adam;
      ASSERT_TRUE(adam) << step;
      EXPECT_NEAR(adam->distance, 1, 0.15) << step << " of " << world << " ranks, " << every;
      EXPECT_GT(adam->cosine, 0.9) << step << " of " << world << " ranks, " << every;
    }
  }
}

// A run's length may follow from its data, after the recipe was read.
TEST(Engine, RefusesIntervalsThatDoNotFitTheRun) {
  EngineConfig config = toy_config(
      R"({"type": "ZeroOneAdam", "params": {"var_freeze_step": 10, "local_step_scaler": 1}})", 4,
      4);
  const auto communicator = comm::make_single_rank();
  const auto error = [&] { return message_of([&] { ToyRun run(config, *communicator); }); };
  EXPECT_EQ(error(), "(no error)");
  config.run.steps = 20;
  EXPECT_EQ(error().rfind("toy: key `optimizer.params` makes the interval between synchronizations "
                          "grow to 16 updates, and only 10 of the run's 20",
                          0),
            0u)
      << error();
}

TEST(Engine, ValuesAreSentOnlyWhereTheyDiffer) {
  for (const int world : {2, 4}) {
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      ToyRun run(toy_config(toy::kAdam, 4, 1), communicator);
      const std::vector<float> expected = run.values();
      const auto bytes = static_cast<int64_t>(expected.size() * sizeof(float));
      int64_t before = communicator.wire_bytes_sent();
      run.engine().broadcast_values();
      EXPECT_LT(communicator.wire_bytes_sent() - before, 16 * world);
      EXPECT_EQ(run.values(), expected);
      if (communicator.rank() == world - 1) run.table().values().data<float>()[2100] = 7;
      before = communicator.wire_bytes_sent();
      run.engine().broadcast_values();
      EXPECT_LE(communicator.wire_bytes_sent() - before, 2 * bytes + 16 * world);
      EXPECT_EQ(run.values(), expected);
    });
  }
}

class NotFinite : public testing::TestWithParam<std::tuple<const char*, int, const char*>> {};

TEST_P(NotFinite, LeavesValuesAloneThenStopsWithADiagnosis) {
  const auto [optimizer, first_bad_step, more] = GetParam();
  const EngineConfig config = toy_config(optimizer, 4, 2, more);
  try {
    comm::run_thread_world(2, [&, bad = first_bad_step](comm::Communicator& communicator) {
      ToyRun run(config, communicator);
      for (int step = 0; step < bad; ++step) run.step();
      const std::vector<float> before = run.values();
      const bool poison = communicator.rank() == 1;
      run.step(poison);
      EXPECT_FALSE(run.outcome().applied);
      EXPECT_EQ(run.values(), before);
      run.step();
      EXPECT_TRUE(run.outcome().applied);
      EXPECT_TRUE(run.engine().replicas_agree());
      for (int step = 0; step < 3; ++step) run.step(poison);
    });
    FAIL() << "the run went on";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("weight"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    EXPECT_NE(text.find("step"), std::string::npos) << text;
    // 0/1 Adam may have moved parameters by the others (zero_one_adam_test.cc).
    EXPECT_NE(text.find("No value that is not finite has moved"), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Phases, NotFinite,
    testing::Values(std::tuple{toy::kAdam, 3, ""}, std::tuple{toy::kOneBit, 3, ""},
                    std::tuple{toy::kOneBit, 15, ""},
                    std::tuple{toy::kOneBit, 15, R"(, "gradient_clipping": 1.0)"},
                    std::tuple{toy::kOneBit, 15, toy::kClip},
                    // A scale that is fixed cannot be at fault.
                    std::tuple{toy::kAdam, 3, R"(, "fp16": {"enabled": true,
                                                                  "loss_scale": 128})"},
                    std::tuple{toy::kLamb, 3, ""},
                    std::tuple{toy::kLamb, 3, R"(, "fp16": {"enabled": true,
                                                                  "loss_scale": 128})"}));

TEST(Engine, ReportsOneStepForEachAccumulation) {
  const auto communicator = comm::make_single_rank();
  ToyRun run(toy_config(toy::kAdam, 8, 2), *communicator);
  EXPECT_EQ(run.engine().batch().accumulation, 4);
  int64_t calls = 0;
  run.engine().backward([&](const BackwardInput&) { ++calls; });
  EXPECT_FALSE(run.engine().step().has_value());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace onebit::engine
