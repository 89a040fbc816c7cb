// Runs whose batch does not divide among their ranks (run.uneven_batches).
#include "onebit/apps/pretrain/pretraining_task.h"

#include <gmock/gmock.h>

#include "tests/base/message_of.h"
#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRecipe = R"({
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 2}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 4, "warmup_max_lr": 3e-3}},
  "model": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 64, "max_position_embeddings": 32},
  "data": {"sequence_length": 32, "max_predictions_per_sequence": 5, "evaluation_samples": 16},
  "run": {"steps": 12, "checkpoint_every": 5, "evaluate_every": 6, "seed": 3}})";

class UnevenTest : public PretrainingRuns {
 protected:
  PretrainingOptions options(const std::string& name) const { return options_of(kRecipe, name); }
  PretrainingOptions with_adam(const std::string& name) const {
    PretrainingOptions given = options(name);
    given.recipe.values["optimizer"] =
        parse_json(R"({"type": "AdamW", "params": {"lr": 3e-3}})", "o");
    return given;
  }
  static void deal(PretrainingOptions& given, int64_t micro_batch) {
    given.recipe.values["train_micro_batch_size_per_gpu"] = micro_batch;
    given.recipe.values["run"]["uneven_batches"] = true;
  }
  void expect_same_losses(const std::string& name, const std::string& other) const {
    const auto one = losses(name), two = losses(other);
    ASSERT_EQ(one.size(), two.size());
    for (size_t step = 0; step < one.size(); ++step) {
      EXPECT_NEAR(one[step], two[step], 1e-5 * one[step]) << other << " " << step;
    }
  }
  std::vector<Json> of_kind(const std::string& name, const char* kind) const {
    std::vector<Json> found;
    for (const Json& line : finetune::lines_in(corpus_.folder(name))) {
      if (line.at("kind") == kind) found.push_back(line);
    }
    return found;
  }
};

// In one micro-step, in two, and in three with a micro-batch that is empty, with dropout.
TEST_F(UnevenTest, ThreeRanksSeeWhatOneRankSees) {
  train(with_adam("one"), 1);
  for (const int64_t micro_batch : {3, 2, 1}) {
    const std::string name = "three" + std::to_string(micro_batch);
    PretrainingOptions three = with_adam(name);
    deal(three, micro_batch);
    three.recipe.values["gradient_clipping"] = 1000;  // the norms are of the average
    train(three, 3);
    expect_same_losses("one", name);
    const auto one_steps = of_kind("one", "step"), steps = of_kind(name, "step");
    for (size_t step = 0; step < steps.size(); ++step) {
      const double norm = one_steps[step].at("gradient_norm").get<double>();
      EXPECT_NEAR(steps[step].at("gradient_norm").get<double>(), norm, 1e-4 * norm) << step;
      EXPECT_EQ(steps[step].at("samples"), one_steps[step].at("samples"));
    }
    const auto one_judged = of_kind("one", "evaluation"), judged = of_kind(name, "evaluation");
    ASSERT_EQ(judged.size(), one_judged.size());
    for (size_t i = 0; i < judged.size(); ++i) {
      const Json &own = judged[i].at("held_out"), &wanted = one_judged[i].at("held_out");
      EXPECT_NEAR(own.at("mlm_loss").get<double>(), wanted.at("mlm_loss").get<double>(), 1e-4);
      EXPECT_EQ(own.at("samples"), wanted.at("samples"));
    }
  }
}

// One of four hosts is lost: the position in the data is still the sample counter.
TEST_F(UnevenTest, FewerRanksContinueWithTheSameSamples) {
  train(with_adam("whole"), 4);
  PretrainingOptions first = with_adam("moved");
  first.recipe.values["run"]["steps"] = 5;
  train(first, 4);
  PretrainingOptions rest = with_adam("moved");
  rest.resume = true;
  EXPECT_THAT(message_of([&] { train(rest, 3); }),
              HasSubstr("the batch does not divide evenly: train_batch_size 8, "
                        "train_micro_batch_size_per_gpu 2, 3 ranks. "));
  EXPECT_THAT(message_of([&] { train(rest, 3); }), HasSubstr("run.uneven_batches to true"));
  deal(rest, 2);
  train(rest, 3);
  expect_same_losses("whole", "moved");
}

TEST_F(UnevenTest, OneBitAdamResumesBitForBit) {
  for (const int64_t micro_batch : {2, 1}) {
    for (const double clipping : {0.0, 0.5}) {
      const auto given = [&](const std::string& name) {
        PretrainingOptions options =
            this->options(name + std::to_string(micro_batch) + (clipping > 0 ? "-clipped" : ""));
        deal(options, micro_batch);
        options.recipe.values["gradient_clipping"] = clipping;
        options.recipe.values["run"].update({{"steps", 20}, {"check_replicas_every", 1}});
        return options;
      };
      train(given("whole"), 3);
      PretrainingOptions first = given("broken");
      first.recipe.values["run"]["steps"] = 17;  // the noise has been measured
      train(first, 3);
      PretrainingOptions rest = given("broken");
      rest.resume = true;
      train(rest, 3);
      EXPECT_EQ(finetune::losses_in(rest.output), finetune::losses_in(given("whole").output));
    }
  }
}

// Residuals are re-distributed: nothing but the samples of a step is the same afterwards.
TEST_F(UnevenTest, OneBitAdamContinuesOnOtherRanks) {
  const auto given = [&](const std::string& name, int64_t steps) {
    PretrainingOptions options = this->options(name);
    deal(options, 2);
    options.recipe.values["run"]["steps"] = steps;
    options.recipe.values["run"]["check_replicas_every"] = 1;
    options.resume = steps > 8;
    return options;
  };
  PretrainingOptions whole = given("whole", 20);
  whole.resume = false;
  train(whole, 4);
  train(given("moved", 8), 4);  // in the compressed phase
  for (const auto& [ranks, steps] : {std::pair{3, 12}, {2, 16}, {3, 20}}) {
    train(given("moved", steps), ranks);
  }
  const auto one = losses("whole"), moved = losses("moved");
  ASSERT_EQ(moved.size(), one.size());
  for (size_t step = 0; step < one.size(); ++step) {
    EXPECT_NEAR(moved[step], one[step], step < 8 ? 0 : 0.1 * one[step]) << step;
  }
  const auto steps = of_kind("moved", "step");
  for (size_t step = 0; step < steps.size(); ++step) {
    EXPECT_EQ(steps[step].at("samples"), 8 * (step + 1));
  }
}

TEST_F(UnevenTest, FewerSamplesThanRanksAreRefused) {
  PretrainingOptions given = options("few");
  deal(given, 2);
  given.recipe.values["train_batch_size"] = 2;
  const std::string text = message_of([&] { train(given, 3); });
  EXPECT_THAT(
      text,
      HasSubstr("recipe: the batch cannot be distributed over the ranks: train_batch_size 2, "));
  EXPECT_THAT(text, HasSubstr("use fewer ranks"));
}

TEST_F(UnevenTest, OneBitAdamLearns) {
  const auto last = [&](const std::string& name, int world) {
    PretrainingOptions given = options(name);
    given.recipe.values["run"]["steps"] = 60;
    deal(given, 8);
    train(given, world);
    const auto all = losses(name);
    EXPECT_LT(all.back(), 0.8 * all.front());
    double sum = 0;
    for (size_t step = 50; step < 60; ++step) sum += all[step] / 10;
    return sum;
  };
  // One bit is not exact, and batches of eight are noisy.
  const double four = last("four", 4);
  EXPECT_NEAR(last("three", 3), four, 0.15 * four);
}

TEST_F(UnevenTest, TheStartTableShowsHowSamplesAreDistributed) {
  PretrainingOptions given = options("shown");
  deal(given, 2);
  given.recipe.values["run"]["steps"] = 1;
  given.quiet = false;
  train(given, 3);
  EXPECT_THAT(of_kind("shown", "start").at(0).dump(),
              HasSubstr("8 sequences of 32 = 3 + 3 + 2 over 3 ranks, in 2 micro-steps of at most 2 "
                        "per rank"));
  // The resolved recipe gives the same run.
  PretrainingOptions again = options("again");
  again.recipe.values = read_json(corpus_.folder("shown") / "recipe.resolved.json");
  EXPECT_EQ(again.recipe.values["gradient_accumulation_steps"], 2);
  train(again, 3);
  EXPECT_EQ(losses("again"), losses("shown"));
  EXPECT_EQ(read_json(corpus_.folder("again") / "recipe.resolved.json"), again.recipe.values);
}

}  // namespace
}  // namespace onebit::pretrain
