#include "onebit/exchange/engine/levels_choice.h"

#include <gtest/gtest.h>

#include <tuple>

#include "onebit/exchange/comm/thread_communicator.h"
#include "tests/base/message_of.h"
#include "tests/engine/toy_model.h"

namespace onebit::engine {
namespace {

using comm::Nodes;

constexpr const char* kAdam = R"({"type": "AdamW", "params": {"lr": 1e-3}})";
constexpr const char* kOneBit =
    R"({"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 10}})";
constexpr int64_t kElements = 100000;

EngineConfig config_with(const std::string& levels, const char* optimizer = kOneBit,
                         const std::string& more = "", const std::string& more_run = "") {
  const std::string run = levels.empty() ? "" : R"(, "levels": ")" + levels + "\"";
  return toy_config(optimizer, 12, 1, more, run + more_run);
}

TEST(ChooseLevels, IsOneUnlessRequested) {
  const LevelsChoice choice = choose_levels(config_with(""), Nodes({0, 0, 1, 1}), kElements);
  EXPECT_FALSE(choice.two);
  EXPECT_EQ(choice.text, "");
  // An optimizer that never compresses has nothing to choose.
  EXPECT_FALSE(choose_levels(config_with("auto", kAdam), Nodes({0, 0, 1, 1}), kElements).two);
}

TEST(ChooseLevels, IsTwoOnEvenNodes) {
  for (const char* levels : {"two", "auto"}) {
    const LevelsChoice choice = choose_levels(config_with(levels), Nodes({0, 1, 0, 1}), kElements);
    EXPECT_TRUE(choice.two);
    EXPECT_NE(choice.text.find("2 nodes of 2 ranks"), std::string::npos) << choice.text;
  }
}

TEST(ChooseLevels, ReportsWhatPreventsTwoLevels) {
  struct Case {
    Nodes nodes;
    int64_t elements;
    const char* why;
  };
  const Case cases[] = {
      {Nodes::one(4), kElements, "all ranks (4) are on one node"},
      {Nodes({0, 0, 0, 1}), kElements, "the node of rank 0 has 3, the node of rank 3 has 1"},
      {Nodes({0, 1, 2}), kElements, "each of the 3 nodes has one rank"},
      {Nodes({0, 0, 1, 1}), 2000, "too few to divide"}};
  for (const auto& [nodes, elements, why] : cases) {
    const LevelsChoice choice = choose_levels(config_with("auto"), nodes, elements);
    EXPECT_FALSE(choice.two);
    EXPECT_NE(choice.text.find(why), std::string::npos) << choice.text;
    const std::string error = message_of([&, nodes = nodes, elements = elements] {
      choose_levels(config_with("two"), nodes, elements);
    });
    EXPECT_NE(error.find(why), std::string::npos) << error;
    EXPECT_NE(error.find("`run.levels`"), std::string::npos) << error;
    EXPECT_NE(error.find("\"auto\""), std::string::npos) << error;
  }
}

TEST(ChooseLevels, NeedsA1BitPhaseAndNoShadow) {
  EXPECT_NE(message_of([] { config_with("two", kAdam); }).find("no compressed phase"),
            std::string::npos);
  const std::string watched = R"(, "watch_every": 5, "watch_adam": true)";
  EXPECT_NE(message_of([&] { config_with("auto", kOneBit, "", watched); }).find("watch_adam"),
            std::string::npos);
  EXPECT_NE(message_of([] { config_with("three"); }).find("levels"), std::string::npos);
}

// Clipped before its buckets leave, after all are known, and not at all.
TEST(TwoLevels, TrainAsOneLevelDoes) {
  const Nodes nodes({0, 0, 1, 1});
  const std::string clip = R"(, "gradient_clipping": 0.5)";
  const std::pair<std::string, std::string> cases[] = {
      {"", ""}, {clip, ""}, {clip, R"(, "clip": "exact")"}};
  for (const auto& [more, more_run] : cases) {
    const ToyTrace one = train_toy(config_with("one", kOneBit, more, more_run), nodes, 40);
    const ToyTrace two = train_toy(config_with("two", kOneBit, more, more_run), nodes, 40);
    EXPECT_EQ(std::vector(two.losses.begin(), two.losses.begin() + 11),
              std::vector(one.losses.begin(), one.losses.begin() + 11))
        << "the warm-up is the same";
    EXPECT_LT(two.losses[39], 0.5 * two.losses[0]);
    // The values that nodes send are less noisy than the values of ranks.
    EXPECT_LT(two.losses[39], 1.2 * one.losses[39]);
    for (size_t step = 12; step < 40; ++step) {
      const StepOutcome& outcome = two.outcomes[step];
      EXPECT_EQ(outcome.phase, optim::Phase::kCompressed);
      if (!more.empty()) {
        EXPECT_LE(outcome.clip_coefficient * outcome.gradient_norm, 0.5 * 1.01);
      }
      EXPECT_GT(outcome.wire_bytes_inside_node, 0);
      EXPECT_LT(outcome.wire_bytes - outcome.wire_bytes_inside_node,
                one.outcomes[step].wire_bytes - one.outcomes[step].wire_bytes_inside_node);
    }
  }
}

// Every rank announces an infinity, and the state stays as it was.
TEST(TwoLevels, SkipStepsThatAreNotFinite) {
  comm::run_thread_world(4, [](comm::Communicator& communicator) {
    communicator.set_nodes(Nodes({0, 0, 1, 1}));
    const char* half = R"(, "fp16": {"enabled": true, "initial_scale_power": 10, "hysteresis": 1})";
    for (const auto& [more, run_more, next_scale] :
         {std::tuple("", "", 1.0), std::tuple("", R"(, "overlap": false)", 1.0),
          std::tuple(half, "", 512.0)}) {
      ToyRun run(config_with("two", kOneBit, more, run_more), communicator);
      for (int step = 0; step < 14; ++step) run.step();
      const std::vector<float> before = run.values();
      run.step(communicator.rank() == 3);
      EXPECT_FALSE(run.outcome().applied);
      EXPECT_EQ(run.values(), before);
      for (int step = 0; step < 3; ++step) run.step();
      EXPECT_TRUE(run.outcome().applied);
      EXPECT_EQ(run.outcome().loss_scale, next_scale);
      EXPECT_NE(run.values(), before);
      EXPECT_TRUE(run.engine().replicas_agree());
    }
  });
}

}  // namespace
}  // namespace onebit::engine
