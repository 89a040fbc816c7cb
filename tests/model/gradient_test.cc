// Losses and gradients of all models against central differences of the formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "onebit/math/model/classification_model.h"
#include "onebit/math/model/embedding_model.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/math/model/question_answering_model.h"
#include "onebit/math/model/tagging_model.h"
#include "tests/model/reference_bert.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"
#include "tests/reference/label_loss.h"

namespace onebit::model {
namespace {

struct Case {
  std::string name;
  bool pre_layer_norm = false;
  ops::ActivationKind activation = ops::ActivationKind::kGeluErf;
  double dropout = 0;
  DType compute = DType::kF32;
};

void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

// Each rounding has an error of half an epsilon, and there are some 60 roundings from an embedding
// to the loss and back. In the norm of a tensor they add like a random walk, so 1e-5 leaves an
// order of magnitude in f32. bf16's epsilon is 65536 times as large, but sums stay in f32: the
// models promise 2e-2; f16 has three more bits.
double tolerance(DType compute) {
  return compute == DType::kF32 ? 1e-5 : compute == DType::kF16 ? 2e-2 / 8 : 2e-2;
}

class ModelGradient : public ::testing::TestWithParam<Case> {
 protected:
  ModelGradient() : config_(tiny_config(GetParam().pre_layer_norm)) {
    config_.activation = GetParam().activation;
    config_.hidden_dropout = GetParam().dropout;
    config_.attention_dropout = GetParam().dropout;
    batch_ = random_batch(config_, {4, 7, 2}, 7);
  }

  TrainingPass pass() const {
    return {.dropout_seed = 99, .loss_scale = loss_scale(), .gradients_ready = {}};
  }
  double loss_scale() const { return GetParam().compute == DType::kF16 ? 1024 : 1; }
  ReferenceBert::DropoutSeed seed() const {
    return GetParam().dropout > 0 ? ReferenceBert::DropoutSeed(99) : std::nullopt;
  }
  double tolerance_here() const { return tolerance(GetParam().compute); }
  // Small tensors may cancel to little more than bf16's rounding; the golden test compares each of
  // them at a better size.
  void compare(Gradients got, const Gradients& expected) const {
    for (auto& [name, values] : got) {
      for (double& value : values) value /= loss_scale();
    }
    if (GetParam().compute == DType::kF32) {
      expect_close(got, expected, tolerance_here());
    } else {
      expect_close_as_a_whole(got, expected, tolerance_here());
    }
  }

  BertConfig config_;
  TinyBatch batch_;
  ParameterTable table_;
  Context context_ = Context::cpu(2);
};

TEST_P(ModelGradient, Pretraining) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const PreTrainingModel::LossWeights weights{.masked_lm = 0.3, .next_sentence = 0.7};
  const auto result = model.forward_backward(context_, batch_.view(), weights, pass());

  ReferenceBert reference(config_, table_);
  const auto expected = reference.pretraining(batch_, seed());
  EXPECT_NEAR(result.mlm_loss_sum, expected.masked_lm, tolerance_here() * expected.masked_lm);
  EXPECT_NEAR(result.nsp_loss_sum, expected.next_sentence,
              tolerance_here() * expected.next_sentence);
  EXPECT_EQ(result.masked, static_cast<int64_t>(batch_.masked_rows.size()));
  EXPECT_EQ(result.sequences, 3);
  compare(gradients_of(table_), reference.differences([&] {
    const auto loss = reference.pretraining(batch_, seed());
    return weights.masked_lm * loss.masked_lm + weights.next_sentence * loss.next_sentence;
  }));
}

TEST_P(ModelGradient, MaskedWordsAlone) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kMaskedWords);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  batch_.next_sentence.clear();
  const auto result = model.forward_backward(context_, batch_.view(), {.masked_lm = 0.3}, pass());

  ReferenceBert reference(config_, table_);
  const auto expected = reference.pretraining(batch_, seed());
  EXPECT_NEAR(result.mlm_loss_sum, expected.masked_lm, tolerance_here() * expected.masked_lm);
  EXPECT_EQ(result.nsp_loss_sum, 0);
  EXPECT_EQ(result.sequences, 0);
  EXPECT_EQ(result.masked, static_cast<int64_t>(batch_.masked_rows.size()));
  compare(gradients_of(table_), reference.differences([&] {
    return 0.3 * reference.pretraining(batch_, seed()).masked_lm;
  }));
}

TEST_P(ModelGradient, QuestionAnswering) {
  QuestionAnsweringModel model(config_, table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_spans(), 0.25, pass());

  ReferenceBert reference(config_, table_);
  const double expected = reference.question_answering(batch_, seed());
  EXPECT_NEAR(result.loss_sum, expected, tolerance_here() * expected);
  EXPECT_EQ(result.sequences, 3);
  Gradients differences =
      reference.differences([&] { return 0.25 * reference.question_answering(batch_, seed()); });
  // A shift common to all tokens does not change which one is chosen: these two are zero.
  Gradients got = gradients_of(table_);
  const char* const last_norm = GetParam().pre_layer_norm
                                    ? "bert.encoder.FinalLayerNorm.bias"
                                    : "bert.encoder.layer.1.output.LayerNorm.bias";
  for (const char* const name : {"qa_outputs.bias", last_norm}) {
    EXPECT_LE(norm_of(got[name]),
              loss_scale() * tolerance_here() * norm_of(differences["qa_outputs.weight"]));
    got.erase(name);
    differences.erase(name);
  }
  compare(got, differences);
}

TEST_P(ModelGradient, Classification) {
  ClassificationModel model(config_, {.outputs = 3}, table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_classes(), 0.25, pass());

  ReferenceBert reference(config_, table_);
  const double expected = reference.classification(batch_, seed());
  EXPECT_NEAR(result.loss_sum, expected, tolerance_here() * expected);
  EXPECT_EQ(result.sequences, 3);
  compare(gradients_of(table_),
          reference.differences([&] { return 0.25 * reference.classification(batch_, seed()); }));
}

TEST_P(ModelGradient, ClassificationWithWeights) {
  const std::vector<float> weights = {0.5f, 2, 0.75f};
  ClassificationModel model(config_, {.outputs = 3, .weights = weights}, table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_classes(), 0.25, pass());

  ReferenceBert reference(config_, table_);
  const auto loss = [&] {
    double sum = 0;
    for (int64_t s = 0; s < batch_.sequences(); ++s) {
      const TinyBatch one = batch_.part(s, s + 1);
      sum += double{weights[static_cast<size_t>(one.classes[0])]} *
             reference.classification(one, seed());
    }
    return sum;
  };
  EXPECT_NEAR(result.loss_sum, loss(), tolerance_here() * loss());
  compare(gradients_of(table_), reference.differences([&] { return 0.25 * loss(); }));
}

TEST_P(ModelGradient, ManyLabels) {
  const std::vector<float> weights = {0.5f, 2, 1};
  ClassificationModel model(config_, {.outputs = 3, .kind = LabelKind::kLabels, .weights = weights},
                            table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_values(), 0.25, pass());

  ReferenceBert reference(config_, table_);
  const auto loss = [&] {
    return reference.classification(batch_, seed(), [&](double x, double t, size_t i) {
      return reference::sigmoid_loss(x, t, double{weights[i]});
    });
  };
  EXPECT_NEAR(result.loss_sum, loss(), tolerance_here() * loss());
  EXPECT_EQ(result.sequences, 3);
  compare(gradients_of(table_), reference.differences([&] { return 0.25 * loss(); }));
}

TEST_P(ModelGradient, Values) {
  for (float& value : batch_.label_values) value = 3 * value - 1;
  ClassificationModel model(config_, {.outputs = 3, .kind = LabelKind::kValues}, table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_values(), 0.25, pass());

  ReferenceBert reference(config_, table_);
  const auto loss = [&] {
    return reference.classification(
        batch_, seed(), [](double x, double t, size_t) { return reference::squared_loss(x, t); });
  };
  EXPECT_NEAR(result.loss_sum, loss(), tolerance_here() * loss());
  compare(gradients_of(table_), reference.differences([&] { return 0.25 * loss(); }));
}

TEST_P(ModelGradient, Tagging) {
  TaggingModel model(config_, {.outputs = 3}, table_);
  fill_by_name(table_, GetParam().compute);
  model.plan(context_, batch_.limits(), {}, true);
  const auto result = model.forward_backward(context_, batch_.view_of_tags(), 0.25, pass());

  ReferenceBert reference(config_, table_);
  const double expected = reference.tagging(batch_, seed());
  EXPECT_NEAR(result.loss_sum, expected, tolerance_here() * expected);
  const auto unlabelled = std::count(batch_.tags.begin(), batch_.tags.end(), -1);
  EXPECT_GT(unlabelled, 0);
  EXPECT_EQ(result.words, static_cast<int64_t>(batch_.tags.size()) - unlabelled);
  compare(gradients_of(table_),
          reference.differences([&] { return 0.25 * reference.tagging(batch_, seed()); }));
}

// Of a loss that is a sum of the vectors' numbers, weighted. Each pooling has its own rows.
TEST_P(ModelGradient, Embedding) {
  const auto weight_of = [](size_t sequence, size_t i) {
    return hashed(hash_of("embedding"), static_cast<uint32_t>(sequence * 100 + i));
  };
  for (const Pooling pooling : {Pooling::kMean, Pooling::kFirst}) {
    SCOPED_TRACE(pooling == Pooling::kMean ? "mean" : "first");
    ParameterTable table;
    EmbeddingModel model(config_, pooling, table);
    fill_by_name(table, GetParam().compute);
    model.plan(context_, batch_.limits(), {}, true);
    const auto hidden = static_cast<size_t>(config_.hidden_size);
    double got = 0;
    model.forward_backward(
        context_, batch_.view(),
        [&](ConstView vectors, View gradients) {
          ASSERT_EQ(vectors.shape(), (Shape{3, config_.hidden_size}));
          for (size_t i = 0; i < static_cast<size_t>(vectors.elements()); ++i) {
            const double weight = weight_of(i / hidden, i % hidden);
            got += weight * double{vectors.data<float>()[i]};
            gradients.data<float>()[i] = static_cast<float>(weight * loss_scale());
          }
        },
        pass());
    ReferenceBert reference(config_, table);
    const auto loss = [&] {
      const auto vectors = pooling == Pooling::kMean ? reference.mean_vectors(batch_, seed())
                                                     : reference.first_vectors(batch_, seed());
      double sum = 0;
      for (size_t s = 0; s < vectors.size(); ++s) {
        for (size_t i = 0; i < hidden; ++i) sum += weight_of(s, i) * vectors[s][i];
      }
      return sum;
    };
    EXPECT_NEAR(got, loss(), tolerance_here() * (std::abs(loss()) + 1));
    compare(gradients_of(table), reference.differences(loss));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Model, ModelGradient,
    ::testing::Values(Case{.name = "PostLn"}, Case{.name = "PreLn", .pre_layer_norm = true},
                      Case{.name = "PostLnTanh", .activation = ops::ActivationKind::kGeluTanh},
                      Case{.name = "PostLnDropout", .dropout = 0.2},
                      Case{.name = "PreLnDropout", .pre_layer_norm = true, .dropout = 0.2},
                      Case{.name = "PostLnBf16", .compute = DType::kBF16},
                      Case{.name = "PostLnF16", .compute = DType::kF16},
                      Case{.name = "PreLnBf16", .pre_layer_norm = true, .compute = DType::kBF16}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace onebit::model
