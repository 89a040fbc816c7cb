// Pre-training with the 1-bit optimizers, from the recipe to the model: it learns, resumes bit
// for bit from every phase, and its model is the one that all ranks have in common.
#include "onebit/apps/pretrain/pretraining_evaluation.h"
#include "onebit/math/ops/linear.h"
#include "tests/base/message_of.h"
#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

constexpr const char* kRecipe = R"({
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0,
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 4}},
  "model": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 64, "max_position_embeddings": 32},
  "data": {"sequence_length": 32, "max_predictions_per_sequence": 5, "evaluation_samples": 16},
  "run": {"steps": 26, "checkpoint_every": 1, "keep_last": 30, "evaluate_every": 7,
          "check_replicas_every": 1, "seed": 3}})";

// The noise is measured until update 15, so that the last resumed runs use the saved measurement.
constexpr const char* kOneBitAdam =
    R"({"type": "OneBitAdam", "params": {"lr": 3e-3, "weight_decay": 0.01, "freeze_step": 6}})";
constexpr const char* kOneBitLamb =
    R"({"type": "OneBitLamb", "params": {"lr": 2e-2, "weight_decay": 0.01, "freeze_step": 6}})";
// Updates 1 to 4 are dense. 6, 8 and 10 average as well, 5, 7, 9 and 11 do not. 12 to 17 exchange,
// then 18, 20, 22, then 24, and the last one, 26, in any case.
constexpr const char* kZeroOneAdam = R"({"type": "ZeroOneAdam", "params": {"lr": 3e-3,
    "weight_decay": 0.01, "var_freeze_step": 11, "var_update_scaler": 4, "local_step_scaler": 6,
    "local_step_clipper": 4}})";

class OptimizersTest : public PretrainingRuns, public testing::WithParamInterface<const char*> {
 protected:
  PretrainingOptions options(const std::string& name, const char* optimizer = GetParam()) const {
    PretrainingOptions options = options_of(kRecipe, name);
    options.recipe.values["optimizer"] = parse_json(optimizer, "recipe");
    options.recipe.values["scheduler"]["params"]["warmup_max_lr"] =
        options.recipe.values["optimizer"]["params"]["lr"];
    return options;
  }
};

TEST_P(OptimizersTest, Learns) {
  PretrainingOptions given = options("run");
  given.recipe.values["run"] = {{"steps", 60}};
  train(given, 2);
  const auto all = losses("run");
  EXPECT_LT(all.back(), 0.85 * all.front());
}

TEST_P(OptimizersTest, ResumesBitForBitFromEveryPhase) {
  for (const int world : {1, 2}) {
    PretrainingOptions given = options("run" + std::to_string(world));
    train(given, world);
    const auto whole = losses(given.output.filename());
    ASSERT_EQ(whole.size(), 26u);
    given.resume = true;
    for (const int at : {23, 17, 9, 3}) {
      given.tag = "global_step" + std::to_string(at);
      train(given, world);
      EXPECT_EQ(losses(given.output.filename()), whole) << at << " on " << world << " ranks";
    }
  }
}

// Copies of the matrices follow every change of the values, and multiply to the same bits.
TEST_P(OptimizersTest, PackedMatricesChangeNoBit) {
  Context context = Context::cpu(1);
  if (!ops::bf16_is_native(context)) GTEST_SKIP() << "this processor has no bf16 instructions";
  for (const int world : {1, 2}) {  // 4 and 2 micro-batches a step
    std::vector<Json> records[2];
    for (const bool packs : {false, true}) {
      PretrainingOptions given = options(fmt::format("run{}{}", world, packs));
      given.recipe.values["bf16"] = {{"enabled", true}};
      given.recipe.values["run"]["pack_weights"] = packs;
      train(given, world);
      for (Json& line : finetune::lines_in(given.output)) {
        if (line.contains("held_out")) records[packs].push_back(line.at("held_out"));
      }
      for (const double loss : losses(given.output.filename())) records[packs].emplace_back(loss);
    }
    EXPECT_GT(records[0].size(), 26u);
    EXPECT_EQ(records[0], records[1]) << world << " ranks";
  }
}

// The run continues on more ranks, on one rank, and on two again.
TEST_P(OptimizersTest, ContinuesOnAnotherNumberOfRanks) {
  PretrainingOptions given = options("run");
  train(given, 2);
  const auto whole = losses("run");
  given.resume = true;
  for (const auto& [at, world] : {std::pair(21, 4), std::pair(19, 1), std::pair(8, 2)}) {
    given.tag = "global_step" + std::to_string(at);
    train(given, world);
    const auto found = losses("run");
    ASSERT_EQ(found.size(), whole.size());
    for (size_t step = 0; step < whole.size(); ++step) {
      EXPECT_NEAR(found[step], whole[step], 0.05 * whole[step]) << step << " on " << world;
    }
  }
}

// The model in a checkpoint between two exchanges is the one that the run evaluates there.
TEST_P(OptimizersTest, TheModelIsTheCommonOne) {
  PretrainingOptions given = options("run");
  given.recipe.values["data"]["evaluation_samples"] = 0;
  given.recipe.values["run"]["evaluate_every"] = 21;
  given.recipe.values["run"]["check_replicas_every"] = 0;
  train(given, 2);
  double held_out = 0;
  for (const Json& line : finetune::lines_in(given.output)) {
    if (line.contains("held_out") && line.at("step") == 21) {
      held_out = line.at("held_out").at("mlm_loss").get<double>();
    }
  }
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  const HeldOutResult again = evaluate_model(
      context, {.model = given.output / "global_step21", .data = corpus_.valid()}, *communicator);
  EXPECT_NEAR(again.mlm_loss, held_out, 1e-5);
}

TEST_P(OptimizersTest, ACheckpointOfAnotherOptimizerIsOneError) {
  PretrainingOptions given = options("run");
  train(given, 2);
  for (const char* other :
       {kOneBitAdam, kOneBitLamb, kZeroOneAdam, R"({"type": "AdamW", "params": {"lr": 1e-3}})"}) {
    if (other == std::string(GetParam())) continue;
    PretrainingOptions resumed = options("run", other);
    resumed.resume = true;
    const std::string error = message_of([&] { train(resumed, 2); });
    EXPECT_NE(error.find("resume with the same optimizer.type"), std::string::npos) << error;
    EXPECT_NE(error.find("--initialize-from"), std::string::npos) << error;
  }
  // The remedy that the error names.
  PretrainingOptions fresh = options("fresh", R"({"type": "AdamW", "params": {"lr": 1e-3}})");
  fresh.initialize_from = given.output;
  train(fresh, 2);
  EXPECT_LT(losses("fresh").front(), losses("run").front());
}

INSTANTIATE_TEST_SUITE_P(All, OptimizersTest,
                         testing::Values(kOneBitAdam, kOneBitLamb, kZeroOneAdam));

}  // namespace
}  // namespace onebit::pretrain
