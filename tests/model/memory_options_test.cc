// Trading memory for time must not change results.
#include <gtest/gtest.h>

#include "onebit/math/model/pretraining_model.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {
namespace {

struct Outcome {
  PreTrainingModel::Result result;
  Gradients gradients;
};

Outcome run(bool pre_layer_norm, const MemoryOptions& options) {
  EncoderConfig config = tiny_config(pre_layer_norm);
  config.layers = 3;
  config.hidden_dropout = 0.1;
  config.attention_dropout = 0.1;
  TinyBatch batch = random_batch(config, {5, 9, 3}, 3);
  Context context = Context::cpu(2);
  ParameterTable table;
  PreTrainingModel model(config, table, PreTrainingHeads::kBoth);
  fill_by_name(table, DType::kF32);
  model.plan(context, batch.limits(), options, true);
  const PreTrainingModel::LossWeights weights{.masked_lm = 0.1, .next_sentence = 0.3};
  const TrainingPass pass{.dropout_seed = 5, .loss_scale = 1, .gradients_ready = {}};
  Outcome done;
  done.result = model.forward_backward(context, batch.view(), weights, pass);
  done.gradients = gradients_of(table);
  return done;
}

class MemoryChoice : public ::testing::TestWithParam<std::tuple<bool, int>> {
 protected:
  bool pre_layer_norm() const { return std::get<0>(GetParam()); }
  MemoryOptions options() const {
    const int bits = std::get<1>(GetParam());
    return {.gelu_checkpoint = (bits & 1) != 0,
            .normalize_invertible = (bits & 2) != 0,
            .full_recomputation = (bits & 4) != 0};
  }
};

TEST_P(MemoryChoice, KeepsLossesAndGradients) {
  const Outcome plain = run(pre_layer_norm(), {});
  const Outcome chosen = run(pre_layer_norm(), options());
  EXPECT_EQ(chosen.result.mlm_loss_sum, plain.result.mlm_loss_sum);
  EXPECT_EQ(chosen.result.nsp_loss_sum, plain.result.nsp_loss_sum);
  if (options().normalize_invertible) {
    // (y - beta) / gamma restores the normalised value up to a few roundings.
    expect_close(chosen.gradients, plain.gradients, 1e-5);
  } else {
    expect_equal(chosen.gradients, plain.gradients);
  }
}

INSTANTIATE_TEST_SUITE_P(Model, MemoryChoice,
                         ::testing::Combine(::testing::Bool(), ::testing::Range(1, 8)));

}  // namespace
}  // namespace onebit::model
