#include <gtest/gtest.h>

#include <mutex>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/engine/engine.h"
#include "tests/engine/toy_model.h"
#include "tests/optim/memory_state.h"

namespace onebit::engine {
namespace {

TEST(EngineClipping, ClipsByTheNormOfTheAverage) {
  for (const char* optimizer : {toy::kAdam, toy::kLamb}) {
    const ToyTrace trace =
        train_toy(toy_config(optimizer, 4, 2, R"(, "gradient_clipping": 0.01)"), 2, 2);
    EXPECT_GT(trace.outcomes[0].gradient_norm, 0.01);
    EXPECT_NEAR(trace.outcomes[0].clip_coefficient * trace.outcomes[0].gradient_norm, 0.01, 1e-6);
  }
}

// Whether buckets were sent early, for each step in the compressed phase of a run with clipping.
TEST(EngineClipping, ClipsBucketByBucketDuringTheBackwardPass) {
  for (const bool exact : {false, true}) {
    const EngineConfig config =
        toy_config(toy::kOneBit, 12, 2, toy::kClip, exact ? toy::kExactly : "");
    comm::run_thread_world(3, [&](comm::Communicator& communicator) {
      ToyRun run(config, communicator);
      int clipped = 0;
      for (int step = 0; step < 30; ++step) {
        run.step();
        EXPECT_TRUE(run.engine().replicas_agree());
        const bool compressed = run.outcome().phase == optim::Phase::kCompressed;
        EXPECT_EQ(run.announces(), !compressed || !exact) << step;
        const auto& [coefficient, norm] =
            std::pair(run.outcome().clip_coefficient, run.outcome().gradient_norm);
        EXPECT_LE(coefficient * norm, 0.5 * 1.01);
        if (compressed) clipped += coefficient < 1 ? 1 : 0;
      }
      EXPECT_GT(clipped, 5);
    });
  }
}

// The toy's buckets and ranks differ little from step to step.
TEST(EngineClipping, ClippingByBucketLearnsWhatExactClippingLearns) {
  const ToyTrace exact =
      train_toy(toy_config(toy::kOneBit, 12, 2, toy::kClip, toy::kExactly), 3, 40);
  const ToyTrace by_bucket = train_toy(toy_config(toy::kOneBit, 12, 2, toy::kClip), 3, 40);
  ASSERT_EQ(exact.losses[10], by_bucket.losses[10]);  // the warm-up is the same
  EXPECT_NEAR(by_bucket.losses[39], exact.losses[39], 0.1 * exact.losses[10]);
  EXPECT_LT(by_bucket.losses[39], 0.5 * exact.losses[10]);
}

// With a loss scale, or on one rank, no bucket is sent before the whole gradient is known.
TEST(EngineClipping, ClipsExactlyWhereNothingLeavesEarly) {
  comm::run_thread_world(1, [&](comm::Communicator& communicator) {
    ToyRun run(toy_config(toy::kOneBit, 4, 4, toy::kClip), communicator);
    for (int step = 0; step < 12; ++step) run.step();
    EXPECT_EQ(run.outcome().phase, optim::Phase::kCompressed);
    EXPECT_FALSE(run.announces());
    const auto& outcome = run.outcome();
    EXPECT_NEAR(outcome.clip_coefficient, std::min(1.0, 0.5 / outcome.gradient_norm), 1e-12);
  });
  const EngineConfig half = toy_config(toy::kOneBit, 4, 1, R"(, "gradient_clipping": 0.5, "fp16":
                                                          {"enabled": true, "loss_scale": 8})");
  EXPECT_EQ(half.run.clip, Clip::kExact);
  EXPECT_NE(half.why_compressed_buckets_wait().find("fp16"), std::string::npos);
}

// With a freeze after 4 updates six more must be seen before buckets have limits.
TEST(EngineClipping, ReportsThatItWaitsUntilBucketsAreKnown) {
  const char* soon = R"({"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 4}})";
  testing::internal::CaptureStderr();
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    ToyRun run(toy_config(soon, 12, 3, toy::kClip), communicator);
    for (int step = 1; step <= 14; ++step) {
      run.step();
      EXPECT_EQ(run.announces(), step <= 4 || step > 10) << step;
    }
  });
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string line =
      "update 5: the norm's distribution over buckets has not been measured yet: for 6 updates "
      "clipping is exact";
  EXPECT_NE(log.find(line), std::string::npos) << log;
  EXPECT_EQ(log.find("not been measured yet", log.find(line) + line.size()), std::string::npos);
}

// One rank cannot distinguish noise from signal. Until several ranks have measured the noise, they
// clip as if there were none, which makes updates too small, never too large, and report it once.
TEST(EngineClipping, ReportsThatItClipsMoreUntilTheNoiseIsKnown) {
  constexpr int kSaved = 14;
  const EngineConfig config = toy_config(toy::kOneBit, 12, 2, toy::kClip);
  optim::MemoryState saved;
  std::vector<float> values;
  comm::run_thread_world(1, [&](comm::Communicator& communicator) {
    ToyRun run(config, communicator);
    for (int step = 0; step < kSaved; ++step) run.step();
    run.engine().save(saved);
    values = run.values();
  });
  const auto log_of = [&](int world) {
    testing::internal::CaptureStderr();
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      ToyRun run(config, communicator);
      std::copy(values.begin(), values.end(), run.table().values().data<float>());
      run.engine().load(optim::MemoryReader({saved}));
      run.continue_from(12 * kSaved);
      for (int step = 1; step <= 12; ++step) {
        run.step();
        const double local = std::sqrt(run.outcome().local_gradient_square);
        const double norm = run.outcome().gradient_norm;
        if (world > 1 && step <= 9) {
          // Exact, by a norm that is too large.
          EXPECT_NEAR(run.outcome().clip_coefficient, std::min(1.0, 0.5 / norm), 1e-12) << step;
          EXPECT_NEAR(local, std::min(0.5, norm), 1e-6) << step;
        } else if (world > 1) {
          EXPECT_LT(norm * run.outcome().clip_coefficient, 0.95 * local) << step;
        }
      }
    });
    return testing::internal::GetCapturedStderr();
  };
  const std::string log = log_of(3);
  const std::string line = "update 15: the noise of gradients has not been measured yet";
  EXPECT_NE(log.find(line), std::string::npos) << log;
  EXPECT_NE(log.find("by a factor of up to 1.73"), std::string::npos) << log;
  EXPECT_EQ(log.find("noise of gradients", log.find(line) + line.size()), std::string::npos);
  EXPECT_EQ(log_of(1).find("noise of gradients"), std::string::npos);
}

// In the compressed phase no rank has the average. The reported norm continues as before, where the
// ranks' own norms are nearly twice as large.
TEST(EngineClipping, TheNormDoesNotJumpAtTheFreeze) {
  const char* optimizer = R"({"type": "OneBitAdam", "params": {"lr": 1e-5, "freeze_step": 10}})";
  for (const bool overlap : {true, false}) {
    EngineConfig config = toy_config(optimizer, 12, 4);
    config.run.overlap = overlap;
    const ToyTrace trace = train_toy(config, 3, 13);
    ASSERT_EQ(trace.outcomes[8].phase, optim::Phase::kWarmup);
    ASSERT_EQ(trace.outcomes[12].phase, optim::Phase::kCompressed);
    const double before = trace.outcomes[8].gradient_norm;
    EXPECT_NEAR(trace.outcomes[12].gradient_norm, before, 0.05 * before) << overlap;
  }
}

// Later the share of noise in the average grows, as it does while a model learns: a ratio that is
// measured once would over-estimate the norm, and clip, by 1.7.
TEST(EngineClipping, TheNormIsFollowedWhileTheShareOfNoiseRises) {
  constexpr int kWorld = 4, kSteps = 400, kObserved = 40;
  constexpr int64_t kElements = 16 * comm::kBlockElements;
  for (const int freeze : {6, 60}) {
    EngineConfig config = toy_config(
        fmt::format(
            R"({{"type": "OneBitAdam", "params": {{"lr": 1e-4, "betas": [0.9, 0.99], "freeze_step": {}}}}})",
            freeze),
        kWorld, 1);
    config.run.steps = kSteps;
    comm::run_thread_world(kWorld, [&](comm::Communicator& communicator) {
      ParameterTable table;
      table.add({.name = "weight", .shape = {kElements}});
      table.allocate(Device{}, DType::kF32);
      Context context = Context::cpu(1);
      Engine engine(context, table, config, communicator);
      double mean = 0;
      for (int step = 1; step <= kSteps; ++step) {
        // The mean square of the average is 1 all the time.
        const double share = step <= freeze ? 0.1 : 0.9;
        const double signal = std::sqrt(2 * (1 - share)), noise = std::sqrt(3 * share * kWorld);
        engine.backward([&](const BackwardInput& input) {
          RandomSequence random(5, static_cast<uint64_t>(communicator.rank()),
                                static_cast<uint64_t>(step));
          float* gradient = table.gradients().data<float>();
          for (int64_t i = 0; i < kElements; ++i) {
            const double angle = 0.01 * step + static_cast<double>(i);
            gradient[i] =
                static_cast<float>(signal * std::sin(angle) + noise * (2 * random.uniform() - 1));
          }
          if (input.gradients_ready) input.gradients_ready({0, kElements});
        });
        const StepOutcome outcome = engine.step().value();
        if (step > kSteps - kObserved) mean += outcome.gradient_norm / kObserved;
      }
      const double expected = std::sqrt(static_cast<double>(kElements));
      EXPECT_NEAR(mean, expected, 0.15 * expected) << "freeze after " << freeze;
    });
  }
}

}  // namespace
}  // namespace onebit::engine
