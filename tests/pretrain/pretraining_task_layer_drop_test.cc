// Pre-training with progressive layer drop, from the recipe to the model.
#include <set>

#include "onebit/apps/pretrain/pretraining_evaluation.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/model/layer_drop.h"
#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

// Half of the layers are left out after some steps.
constexpr const char* kRecipe = R"({
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 8}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 4, "warmup_max_lr": 3e-3}},
  "progressive_layer_drop": {"enabled": true, "theta": 0.1, "gamma": 0.3},
  "model": {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2,
            "intermediate_size": 64, "max_position_embeddings": 32, "pre_layer_norm": true},
  "data": {"sequence_length": 32, "max_predictions_per_sequence": 5, "evaluation_samples": 16},
  "run": {"steps": 24, "checkpoint_every": 5, "evaluate_every": 6, "check_replicas_every": 1,
          "seed": 3, "bucket_mb": 0.0625}})";
constexpr model::LayerDropOptions kDrop = {.enabled = true, .theta = 0.1, .gamma = 0.3};
constexpr int64_t kLayers = 4;

class LayerDropRuns : public PretrainingRuns {
 protected:
  PretrainingOptions options(const std::string& name, int64_t steps = 24) const {
    PretrainingOptions options = options_of(kRecipe, name);
    options.recipe.values["run"]["steps"] = steps;
    return options;
  }
};

TEST_F(LayerDropRuns, Learns) {
  PretrainingOptions given = options("run", 80);
  given.recipe.values["run"]["checkpoint_every"] = 0;
  train(given, 2);
  const auto all = losses("run");
  ASSERT_EQ(all.size(), 80u);
  EXPECT_LT(all.back(), 0.85 * all.front());
}

// Buckets are sent during the backward pass before and after the freeze, and ranks stay equal
// (check_replicas_every). Dropped layers are a function of counters that a checkpoint contains.
TEST_F(LayerDropRuns, ResumesBitForBit) {
  for (const int world : {1, 2}) {
    const std::string whole = "whole" + std::to_string(world);
    train(options(whole), world);
    for (const int stop : {7, 17}) {
      const std::string broken = "broken" + std::to_string(world) + "at" + std::to_string(stop);
      train(options(broken, stop), world);
      PretrainingOptions rest = options(broken);
      rest.resume = true;
      train(rest, world);
      EXPECT_EQ(losses(broken), losses(whole)) << world << " ranks, stopped after " << stop;
    }
  }
}

// Without accumulation ranks and one rank compute the same passes.
TEST_F(LayerDropRuns, TwoRanksSeeWhatOneRankSees) {
  PretrainingOptions given = options("one");
  given.recipe.values["optimizer"] =
      parse_json(R"({"type": "AdamW", "params": {"lr": 3e-3}})", "o");
  given.recipe.values["train_micro_batch_size_per_gpu"] = 8;
  train(given, 1);
  given.recipe.values["train_micro_batch_size_per_gpu"] = 4;
  given.output = corpus_.folder("two");
  train(given, 2);
  const auto one = losses("one"), two = losses("two");
  ASSERT_EQ(one.size(), two.size());
  for (size_t step = 0; step < one.size(); ++step)
    EXPECT_NEAR(one[step], two[step], 1e-5 * one[step]) << step;
}

TEST_F(LayerDropRuns, OverlapChangesNothing) {
  PretrainingOptions given = options("early");
  given.recipe.values.erase("gradient_clipping");
  train(given, 2);
  given.output = corpus_.folder("late");
  given.recipe.values["run"]["overlap"] = false;
  train(given, 2);
  EXPECT_EQ(losses("early"), losses("late"));
}

// Four micro-steps on one rank, each of which draws its dropped layers.
TEST_F(LayerDropRuns, LogsWhatItComputes) {
  const PretrainingOptions given = options("run");
  train(given, 1);
  const model::LayerDrop drop(kDrop, kLayers);
  std::set<double> seen;
  for (const Json& line : finetune::lines_in(given.output)) {
    if (line.at("kind") != "step") continue;
    const int64_t step = line.at("step").get<int64_t>() - 1;
    const Json& metrics = line.at("metrics");
    EXPECT_NEAR(metrics.at("layer_drop_theta").get<double>(), drop.theta(step), 1e-12);
    double computed = 0;
    for (int64_t micro_step = 0; micro_step < 4; ++micro_step) {
      std::vector<float> factors(kLayers);
      drop.draw(3, step, micro_step, factors);
      for (const float factor : factors) computed += factor != 0 ? 0.25 : 0;
    }
    EXPECT_EQ(metrics.at("layers").get<double>(), computed) << step;
    seen.insert(computed);
  }
  EXPECT_GT(seen.size(), 3u);
}

// Evaluation computes every layer: the run's evaluation equals the model's.
TEST_F(LayerDropRuns, EvaluationLeavesNothingOut) {
  PretrainingOptions given = options("run");
  given.recipe.values["data"]["evaluation_samples"] = 0;
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  const training::RunSummary summary = run_pretraining(context, given, *communicator);
  const HeldOutResult again =
      evaluate_model(context, {.model = given.output, .data = corpus_.valid()}, *communicator);
  ASSERT_TRUE(summary.after.has_value());
  EXPECT_NEAR(again.mlm_loss, metrics::value_of(summary.after->metrics, "mlm_loss"), 1e-5);
  EXPECT_NEAR(again.nsp_loss, metrics::value_of(summary.after->metrics, "nsp_loss"), 1e-5);
}

TEST_F(LayerDropRuns, StepsReserveNoBuffersAfterTheFirst) {
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  const PretrainingOptions given = options("run", 60);
  PretrainingTask task(given, *communicator);
  training::Session run(context, task, given, *communicator);
  for (int step = 0; step < 12; ++step) run.train_step();
  const int64_t before = memory::allocation_count();
  for (int step = 0; step < 12; ++step) run.train_step();
  EXPECT_EQ(memory::allocation_count(), before);
}

TEST_F(LayerDropRuns, ReportsAtTheStartWhatPassesCompute) {
  const auto communicator = comm::make_single_rank();
  const PretrainingTask task(options("run"), *communicator);
  const model::LayerDrop drop(kDrop, kLayers);
  const training::ComputedLayers computed = task.computed_layers(0, 24);
  EXPECT_NEAR(computed.share, drop.mean_layers(0, 24) / kLayers, 1e-12);
  EXPECT_NE(computed.text.find("theta from 1 to 0.101: a pass computes"), std::string::npos)
      << computed.text;
  EXPECT_TRUE(task.computed_layers(24, 24).text.empty());
  PretrainingOptions whole = options("run");
  whole.recipe.values["progressive_layer_drop"]["enabled"] = false;
  const PretrainingTask other(whole, *communicator);
  EXPECT_EQ(other.computed_layers(0, 24).share, 1);
  EXPECT_TRUE(other.computed_layers(0, 24).text.empty());
}

}  // namespace
}  // namespace onebit::pretrain
