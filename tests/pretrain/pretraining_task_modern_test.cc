// Pre-training of a modern encoder with 1-bit Adam, from the recipe to the model.
#include "onebit/math/model/head_names.h"
#include "onebit/training/training/model_folder.h"
#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

constexpr const char* kRecipe = R"({
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 8}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 4, "warmup_max_lr": 3e-3}},
  "model": {"preset": "modern-tiny", "hidden_size": 32, "num_attention_heads": 2,
            "intermediate_size": 48, "max_position_embeddings": 64, "initializer_range": 0.1},
  "data": {"sequence_length": 32, "max_predictions_per_sequence": 5, "evaluation_samples": 16},
  "run": {"steps": 24, "checkpoint_every": 5, "evaluate_every": 6, "check_replicas_every": 1,
          "seed": 3, "bucket_mb": 0.0625}})";

class ModernRuns : public PretrainingRuns {
 protected:
  PretrainingOptions options(const std::string& name, int64_t steps = 24) const {
    PretrainingOptions options = options_of(kRecipe, name);
    options.recipe.values["run"]["steps"] = steps;
    return options;
  }
};

TEST_F(ModernRuns, LearnsAndItsFolderIsOfTheFamily) {
  train(options("run", 80), 2);
  const auto all = losses("run");
  ASSERT_EQ(all.size(), 80u);
  EXPECT_LT(all.back(), 0.85 * all.front());
  const auto model =
      training::read_model_description(training::find_model_folder(corpus_.folder("run")));
  EXPECT_EQ(model.config.family, "modernbert");
  EXPECT_EQ(model.architecture, model::kMaskedWordArchitecture);
  EXPECT_EQ(model.config.choices, model::preset("modern-tiny").choices);
}

TEST_F(ModernRuns, ResumesBitForBit) {
  for (const int world : {1, 2}) {
    const std::string whole = "whole" + std::to_string(world);
    train(options(whole), world);
    const std::string broken = "broken" + std::to_string(world);
    train(options(broken, 17), world);
    PretrainingOptions rest = options(broken);
    rest.resume = true;
    train(rest, world);
    EXPECT_EQ(losses(broken), losses(whole)) << world << " ranks";
  }
}

// Pre-training as ModernBERT's and Ettin's: packed samples, the trapezoidal schedule (warm-up to
// step 6, decay from step 18), shares of masked tokens that change with its phases.
class TrapezoidalRuns : public ModernRuns {
 protected:
  PretrainingOptions options(const std::string& name, const Json& optimizer) const {
    PretrainingOptions options = ModernRuns::options(name);
    Json& recipe = options.recipe.values;
    recipe["optimizer"] = optimizer;
    recipe["scheduler"] = {{"type", "warmup_stable_decay"},
                           {"params", {{"warmup_num_steps", 6}, {"decay_num_steps", 6}}}};
    recipe["data"] = {{"sequence_length", 64},
                      {"sequence_packing", true},
                      {"masked_lm_probability", 0.3},
                      {"masked_lm_schedule", {{"10", 0.15}, {"18", 0.05}}},
                      {"evaluation_samples", 16}};
    recipe["run"]["checkpoint_every"] = 3;
    recipe["run"]["keep_last"] = 100;
    return options;
  }
  // Resumes from checkpoints in the decay, in the constant part and in the warm-up.
  void expect_exact_resumes(const std::string& name, const Json& optimizer, int world) {
    train(options(name, optimizer), world);
    const auto whole = losses(name);
    ASSERT_EQ(whole.size(), 24u);
    for (const char* tag : {"global_step21", "global_step18", "global_step12", "global_step3"}) {
      PretrainingOptions again = options(name, optimizer);
      again.resume = true;
      again.tag = tag;
      train(again, world);
      EXPECT_EQ(losses(name), whole) << name << " from " << tag;
    }
  }
  static Json onebit_adam(int64_t freeze_step) {
    return {{"type", "OneBitAdam"}, {"params", {{"lr", 3e-3}, {"freeze_step", freeze_step}}}};
  }
};

TEST_F(TrapezoidalRuns, ResumeBitForBitInEachPhaseWhereverTheFreezeIs) {
  for (const int64_t freeze_step : {4, 10, 19}) {
    expect_exact_resumes("freeze" + std::to_string(freeze_step), onebit_adam(freeze_step), 2);
  }
}

// Its intervals grow to 4 updates: ranks make local updates in each phase of the schedule.
TEST_F(TrapezoidalRuns, ResumeBitForBitWithLocalUpdates) {
  expect_exact_resumes("intervals",
                       {{"type", "ZeroOneAdam"},
                        {"params",
                         {{"lr", 3e-3},
                          {"var_freeze_step", 4},
                          {"var_update_scaler", 2},
                          {"local_step_scaler", 3},
                          {"local_step_clipper", 4}}}},
                       2);
}

TEST_F(TrapezoidalRuns, LearnTheSameOnAnyNumberOfRanks) {
  const Json adam = {{"type", "AdamW"}, {"params", {{"lr", 3e-3}}}};
  for (const int world : {1, 2}) train(options("ranks" + std::to_string(world), adam), world);
  const auto one = losses("ranks1"), two = losses("ranks2");
  ASSERT_EQ(one.size(), 24u);
  for (size_t step = 0; step < one.size(); ++step) EXPECT_NEAR(two[step], one[step], 1e-3) << step;
  EXPECT_LT(one.back(), one.front());
}

}  // namespace
}  // namespace onebit::pretrain
