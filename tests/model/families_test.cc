// The encoders of all families, and their masked-word heads, against their classes in transformers.
#include <gtest/gtest.h>

#include <array>

#include "onebit/math/model/bert.h"
#include "onebit/math/model/pretraining_model.h"
#include "tests/model/family_golden.h"
#include "tests/model/test_model.h"

namespace onebit::model {
namespace {

class FamilyOfEncoders : public ::testing::TestWithParam<std::string> {};
class FamilyOfWords : public ::testing::TestWithParam<std::string> {};

TEST_P(FamilyOfEncoders, HasTheHiddenStatesAndGradientsOfTransformers) {
  FamilyGolden golden(GetParam(), "encoder");
  Context context = Context::cpu(2);
  ParameterTable table;
  Bert bert(golden.config(), table);
  MemoryPlan memory{Device{}};
  bert.reserve(memory, {.limits = golden.batch().limits(), .memory = {}, .training = true});
  const DeviceBatch batch = golden.batch().view();
  const int64_t rows = batch.rows(), hidden = golden.config().hidden_size;
  const uint32_t seed = hash_of("factors");
  const auto loss = [&] {
    const TrainingPass pass{.dropout_seed = 1};
    const Tensor states = to_cpu_f32(bert.forward(context, batch, {}, &pass));
    double sum = 0;
    float* gradient = bert.output_gradient().data<float>();
    for (int64_t i = 0; i < rows * hidden; ++i) {
      const double factor = hashed(seed, static_cast<uint32_t>(i)) / static_cast<double>(rows);
      sum += factor * states.data<float>()[i];
      gradient[i] = static_cast<float>(factor);
    }
    bert.backward(context, batch, {}, pass);
    return sum;
  };
  const auto outputs = [&] {
    return every(to_cpu_f32(bert.forward(context, batch, {}, nullptr)), 13);
  };
  golden.compare(table, outputs, loss);
}

TEST_P(FamilyOfWords, HasTheLogitsAndGradientsOfTransformers) {
  FamilyGolden golden(GetParam(), "words");
  Context context = Context::cpu(2);
  ParameterTable table;
  PreTrainingModel model(golden.config(), table, PreTrainingHeads::kMaskedWords);
  const auto plan = [&](bool training) {
    model.plan(context, golden.batch().limits(), {}, training);
  };
  const double weight = 1.0 / static_cast<double>(golden.batch().masked_rows.size());
  const auto loss = [&] {
    plan(true);
    const auto result = model.forward_backward(context, golden.batch().view(),
                                               {.masked_lm = weight}, {.dropout_seed = 1});
    return weight * result.mlm_loss_sum;
  };
  const auto outputs = [&] {
    plan(false);
    return every(model.predict_masked(context, golden.batch().view()), 8);
  };
  golden.compare(table, outputs, loss);
}

View positions_of(const ParameterTable& table) {
  const auto& entries = table.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name.ends_with("position_embeddings.weight")) {
      return table.value(static_cast<int>(i));
    }
  }
  return {};
}

// A batch may count positions from -1, for tokens that have none: they get the row of the table
// before the first token's.
TEST(FamiliesWithPositionsAfterPad, HaveARowForTokensWithoutAPosition) {
  for (const char* family : {"roberta", "xlm_roberta", "camembert", "mpnet"}) {
    const EncoderConfig config = golden_config(family);
    ASSERT_EQ(config.choices.first_position, 2) << family;
    Context context = Context::cpu(1);
    ParameterTable table;
    Bert bert(config, table);
    table.allocate(Device{}, DType::kF32);
    fill_by_name(table, DType::kF32);
    TinyBatch batch = random_batch(config, {5, 3}, 7);
    MemoryPlan memory{Device{}};
    bert.reserve(memory, {.limits = batch.limits(), .memory = {}, .training = false});
    const auto states = [&](int64_t lowest) {
      DeviceBatch view = batch.view();
      view.lowest_position = lowest;
      return every(to_cpu_f32(bert.forward(context, view, {}, nullptr)), 1);
    };
    const std::vector<float> from_zero = states(0);
    for (int32_t& position : batch.positions) ++position;
    EXPECT_EQ(states(-1), from_zero) << family;
    batch.positions[1] = 0;
    const std::vector<float> without = states(-1);
    EXPECT_NE(without, from_zero) << family;
    // With the values of that row in the token's former one, its sequence is the same again.
    const View rows = positions_of(table);
    copy(rows.rows(3, 4), rows.rows(1, 2));
    batch.positions[1] = 2;
    std::vector<float> with_its_values = states(-1), first = without;
    with_its_values.resize(static_cast<size_t>(5 * config.hidden_size));
    first.resize(with_its_values.size());
    EXPECT_EQ(with_its_values, first) << family;
  }
}

INSTANTIATE_TEST_SUITE_P(Model, FamilyOfEncoders, ::testing::ValuesIn(families_with("encoder")),
                         [](const auto& tested) { return tested.param; });
INSTANTIATE_TEST_SUITE_P(Model, FamilyOfWords, ::testing::ValuesIn(families_with("words")),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace onebit::model
