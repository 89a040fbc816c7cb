#include "onebit/apps/squad/question_answering_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "onebit/math/model/config.h"
#include "onebit/math/model/memory_report.h"
#include "onebit/math/model/pretraining_model.h"
#include "tests/model/announced_gradients.h"
#include "tests/model/known_heads.h"
#include "tests/model/model_gradient.h"

namespace onebit::squad {
namespace {

using model::expect_known;
using model::fill_by_name;
using model::gradient_cases;
using model::gradients_of;
using model::GradientsAnnounced;
using model::ModelGradient;
using model::name_of_case;
using model::name_of_order;
using model::norm_of;

class AnswerGradient : public ModelGradient {
 protected:
  void compare_with_formulas(double head_dropout);
};

void AnswerGradient::compare_with_formulas(double head_dropout) {
  QuestionAnsweringModel model(config_, table_, head_dropout);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_spans(), 0.25, pass());

  model::ReferenceBert reference(config_, table_);
  const auto drawn = model::ReferenceBert::DropoutSeed(pass().dropout_seed);
  const auto loss = [&] { return reference.question_answering(batch_, drawn, head_dropout); };
  const double expected = loss();
  EXPECT_NEAR(result.loss_sum, expected, tolerance_here() * expected);
  EXPECT_EQ(result.sequences, 3);
  model::Gradients differences = reference.differences([&] { return 0.25 * loss(); });
  // A shift common to all tokens does not change which one is chosen, so these gradients are zero.
  // With dropout before the head the gradient of the last norm is not zero.
  model::Gradients got = gradients_of(table_);
  std::vector<std::string> without_effect{"qa_outputs.bias"};
  if (head_dropout == 0) {
    without_effect.emplace_back(GetParam().pre_layer_norm
                                    ? "bert.encoder.FinalLayerNorm.bias"
                                    : "bert.encoder.layer.1.output.LayerNorm.bias");
  }
  for (const std::string& name : without_effect) {
    EXPECT_LE(norm_of(got[name]),
              loss_scale() * tolerance_here() * norm_of(differences["qa_outputs.weight"]));
    got.erase(name);
    differences.erase(name);
  }
  compare(got, differences);
}

TEST_P(AnswerGradient, QuestionAnswering) {
  compare_with_formulas(0);
}

TEST_P(AnswerGradient, DropoutBeforeTheHead) {
  compare_with_formulas(0.3);
}

INSTANTIATE_TEST_SUITE_P(Model, AnswerGradient, gradient_cases(), name_of_case);

TEST_P(GradientsAnnounced, ByQuestionAnswering) {
  QuestionAnsweringModel model(config_, table_);
  check_passes_of(model, 1, batch_.view_of_spans());
}

INSTANTIATE_TEST_SUITE_P(Model, GradientsAnnounced, ::testing::Bool(), name_of_order);

TEST(QuestionAnsweringModel, HasNoPooler) {
  model::EncoderConfig config = model::preset("bert-large");
  config.vocab_size = 30528;
  ParameterTable table;
  // The published total counts the pooler, which this model has no use for.
  const QuestionAnsweringModel model(config, table);
  EXPECT_EQ(table.parameter_count(), 335'150'082 - 1024 * 1025);
  expect_known(table);
}

// Answers need every row, masked words only a few.
TEST(QuestionAnsweringModel, SavesActivationsOfEveryRow) {
  const model::EncoderConfig config = model::tiny_config(false);
  const model::BatchLimits limits{.rows = 60, .sequences = 2, .labelled = 4};
  Context context = Context::cpu(1);
  ParameterTable table;
  QuestionAnsweringModel answerer(config, table);
  table.allocate(Device{}, DType::kF32);
  const auto answers =
      model::memory_report(table, answerer.plan(context, limits, {}, true), DType::kF32);
  const auto words =
      model::memory_report(config, limits, {}, DType::kF32, model::PreTrainingHeads::kBoth);
  const auto bytes_of = [](const std::vector<model::MemoryRow>& rows, const std::string& name) {
    const auto found =
        std::ranges::find_if(rows, [&](const model::MemoryRow& row) { return row.name == name; });
    return found == rows.end() ? -1 : found->bytes;
  };
  EXPECT_GT(bytes_of(answers, "saved activations"), bytes_of(words, "saved activations"));
  EXPECT_LT(bytes_of(answers, "values"), bytes_of(words, "values"));
}

}  // namespace
}  // namespace onebit::squad
