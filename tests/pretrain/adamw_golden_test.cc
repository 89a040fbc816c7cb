// Compares the engine and its AdamW with PyTorch: the losses of twenty steps of Hugging Face's
// BertForPreTraining (tools/make_model_goldens.py wrote the expected values).
#include <gtest/gtest.h>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/engine/engine.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/model/pretraining_model.h"
#include "tests/model/golden.h"
#include "tests/model/test_model.h"

namespace onebit::pretrain {
namespace {

class AdamWGolden : public ::testing::TestWithParam<std::string> {};

engine::EngineConfig config_with(const Json& adamw) {
  const Json recipe = {{"train_batch_size", 1},
                       {"run", {{"steps", 20}}},
                       {"optimizer", {{"type", "AdamW"}, {"params", adamw}}}};
  Keys keys(recipe, "golden");
  engine::EngineConfig config = engine::parse_engine_config(keys);
  keys.check();
  return config;
}

TEST_P(AdamWGolden, TwentyStepsOfTheEngineFollowPyTorch) {
  const Json golden = read_json(model::golden_folder() / "golden.json");
  const Json& losses = golden.at(GetParam()).at("losses");
  ASSERT_EQ(losses.size(), 20u);
  Json shape = golden.at("config");
  shape["hidden_act"] = GetParam();
  Keys section(shape, "golden.json", "config");
  ParameterTable table;
  model::PreTrainingModel model(model::read_config(section, 0), table,
                                model::PreTrainingHeads::kBoth);
  model::fill_by_name(table, DType::kF32);
  std::vector<model::TinyBatch> batches;
  model::BatchLimits limits;
  for (const Json& batch : golden.at("batches")) {
    batches.push_back(model::batch_from(batch));
    const model::BatchLimits needed = batches.back().limits();
    limits.rows = std::max(limits.rows, needed.rows);
    limits.sequences = std::max(limits.sequences, needed.sequences);
    limits.labelled = std::max(limits.labelled, needed.labelled);
  }
  Context context = Context::cpu(2);
  model.plan(context, limits, {}, true);
  const auto communicator = comm::make_single_rank();
  engine::Engine engine(context, table, config_with(golden.at("adamw")), *communicator);
  for (size_t step = 0; step < losses.size(); ++step) {
    model::TinyBatch& batch = batches[step % batches.size()];
    const model::PreTrainingModel::LossWeights weights{
        .masked_lm = 1.0 / static_cast<double>(batch.masked_rows.size()),
        .next_sentence = 1.0 / static_cast<double>(batch.sequences())};
    double loss = 0;
    engine.backward([&](const engine::BackwardInput& input) {
      const auto sums = model.forward_backward(
          context, batch.view(), weights,
          {.loss_scale = input.loss_scale, .gradients_ready = input.gradients_ready});
      loss = weights.masked_lm * sums.mlm_loss_sum + weights.next_sentence * sums.nsp_loss_sum;
    });
    EXPECT_TRUE(engine.step().value().applied);
    EXPECT_NEAR(loss, losses[step].get<double>(), 1e-4) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, AdamWGolden, ::testing::Values("gelu", "gelu_new"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace onebit::pretrain
