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

}  // namespace
}  // namespace onebit::pretrain
