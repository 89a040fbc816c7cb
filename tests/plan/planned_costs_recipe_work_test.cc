#include "onebit/program/plan/planned_costs.h"

#include <gtest/gtest.h>

#include "onebit/math/model/pretraining_model.h"
#include "tests/model/small_family.h"
#include "tests/plan/small_plan.h"

namespace onebit::plan {
namespace {

using costs::ByKind;
using costs::PassParts;

pretrain::PretrainingConfig four_layers() {
  pretrain::PretrainingConfig config = small_config();
  config.model.layers = 4;
  return config;
}

// count_work() runs a model of two layers. The model observed here has four.
TEST(CountWork, IsWhatAPassOfTheWholeModelDoes) {
  Context context = Context::cpu(1);
  for (const bool recompute : {false, true}) {
    pretrain::PretrainingConfig config = four_layers();
    config.memory.full_recomputation = recompute;
    const RecipeWork work = count_work(context, config, DType::kF32);
    const PassParts whole = costs::observe_pass(context,
                                                {.model = config.model,
                                                 .memory = config.memory,
                                                 .sequences = 3,
                                                 .length = config.data.pairs.sequence_length,
                                                 .masked = config.data.masks.max_predictions},
                                                DType::kF32, 0)
                                .work;
    const ByKind forward = 3 * (work.one_layer.forward + 3 * work.layer_forward);
    const ByKind backward = 3 * (work.one_layer.backward() + 3 * work.layer_backward);
    // Operations are equal exactly. The rest is not, since biases and gains do not grow with the
    // batch.
    EXPECT_DOUBLE_EQ(forward.products, whole.forward.products) << recompute;
    EXPECT_DOUBLE_EQ(backward.products, whole.backward().products) << recompute;
    EXPECT_DOUBLE_EQ(forward.attention, whole.forward.attention) << recompute;
    EXPECT_DOUBLE_EQ(backward.attention, whole.backward().attention) << recompute;
    EXPECT_NEAR(forward.rest / whole.forward.rest, 1, 0.1) << recompute;
    EXPECT_NEAR(backward.rest / whole.backward().rest, 1, 0.1) << recompute;
  }
}

// Some of the layers have a window.
TEST(CountWork, IsWhatAPassOfEveryFamilyDoes) {
  Context context = Context::cpu(1);
  for (const std::string& family : model::all_families()) {
    for (const int64_t layers : {1, 2, 6}) {
      pretrain::PretrainingConfig config = small_config();
      config.model = model::small_family(family);
      config.model.layers = layers;
      config.data.pairs.next_sentence = false;
      config.data.pairs.sequence_length = 80;
      const RecipeWork work = count_work(context, config, DType::kF32);
      const PassParts whole = costs::observe_pass(context,
                                                  {.model = config.model,
                                                   .heads = model::PreTrainingHeads::kMaskedWords,
                                                   .memory = config.memory,
                                                   .sequences = 1,
                                                   .length = 80,
                                                   .masked = config.limits(1).labelled},
                                                  DType::kF32, 0)
                                  .work;
      const auto more = static_cast<double>(layers - 1);
      const ByKind forward = work.one_layer.forward + more * work.layer_forward;
      const ByKind backward = work.one_layer.backward() + more * work.layer_backward;
      const std::string what = fmt::format("{} of {} layers", family, layers);
      EXPECT_NEAR(forward.products / whole.forward.products, 1, 1e-12) << what;
      EXPECT_NEAR(backward.products / whole.backward().products, 1, 1e-12) << what;
      EXPECT_NEAR(forward.attention / whole.forward.attention, 1, 1e-12) << what;
      EXPECT_NEAR(backward.attention / whole.backward().attention, 1, 1e-12) << what;
      EXPECT_NEAR(forward.rest / whole.forward.rest, 1, 0.1) << what;
      EXPECT_NEAR(backward.rest / whole.backward().rest, 1, 0.1) << what;
    }
  }
}

// In the mean over the run a pass computes 2.5 + 1.5 theta of the four layers.
TEST(CountWork, CountsTheLayersThatPassesCompute) {
  Context context = Context::cpu(1);
  pretrain::PretrainingConfig config = four_layers();
  const RecipeWork all = count_work(context, config, DType::kF32);
  config.layer_drop = {.enabled = true, .theta = 0.2, .gamma = 1e9};  // at once, after one step
  const double theta = (1 + 99 * 0.2) / 100;                          // of 100 steps
  const double share = (2.5 + 1.5 * theta - 1) / 3;
  const RecipeWork some = count_work(context, config, DType::kF32);
  EXPECT_EQ(some.one_layer.forward.products, all.one_layer.forward.products);
  EXPECT_NEAR(some.layer_forward.products / all.layer_forward.products, share, 1e-12);
  EXPECT_NEAR(some.layer_backward.attention / all.layer_backward.attention, share, 1e-12);
}

// Rates with which an operation of a product takes a second, and everything else no time.
costs::ComputingCosts unit_rates() {
  const ByKind rates{.products = 1, .attention = 1e30, .rest = 1e30};
  return {.forward = rates, .backward = rates};
}

RecipeWork round_work() {
  RecipeWork work;
  work.one_layer.forward.products = 5;
  work.one_layer.heads.products = 1;
  work.one_layer.encoder.products = 2;
  work.one_layer.embeddings.products = 0.5;
  work.layer_forward.products = 3;
  work.layer_backward.products = 4;
  return work;
}

TEST(PassTimes, AddUpTheLayers) {
  ParameterTable table;
  const model::PreTrainingModel model(four_layers().model, table, model::PreTrainingHeads::kBoth);
  const costs::PassTimes pass = pass_times(round_work(), unit_rates(), table, 2, 3);
  EXPECT_NEAR(pass.forward_seconds, 6 * (5 + 3 * 3), 1e-9);
  EXPECT_NEAR(pass.backward_seconds, 6 * (1 + 2 + 3 * 4 + 0.5), 1e-9);
}

TEST(PassTimes, GradientsAreReadyFromTheHeadsToTheEmbeddings) {
  ParameterTable table;
  const model::PreTrainingModel model(four_layers().model, table, model::PreTrainingHeads::kBoth);
  const costs::PassTimes pass = pass_times(round_work(), unit_rates(), table, 1, 1);
  int64_t end = table.size_elements();
  for (const auto& ready : pass.ready) {  // they cover the buffer from its end on
    EXPECT_EQ(ready.range.end, end);
    end = ready.range.begin;
  }
  EXPECT_EQ(end, 0);
  const auto at = [&](const std::string& name) {
    const int64_t place = table.entry(name).offset_elements;
    for (const auto& ready : pass.ready) {
      if (ready.range.begin <= place && place < ready.range.end) return ready.seconds;
    }
    return -1.0;
  };
  EXPECT_NEAR(at("cls.predictions.transform.dense.weight"), 1, 1e-9);
  EXPECT_NEAR(at("bert.pooler.dense.weight"), 1, 1e-9);
  EXPECT_NEAR(at("bert.encoder.layer.3.output.dense.weight"), 3, 1e-9);
  EXPECT_NEAR(at("bert.encoder.layer.2.output.dense.weight"), 7, 1e-9);
  EXPECT_NEAR(at("bert.encoder.layer.0.attention.self.query.weight"), 15, 1e-9);
  EXPECT_NEAR(at("bert.embeddings.word_embeddings.weight"), 15.5, 1e-9);
}

}  // namespace
}  // namespace onebit::plan
