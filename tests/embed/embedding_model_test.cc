#include "onebit/apps/embed/embedding_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/known_heads.h"
#include "tests/model/model_gradient.h"

namespace onebit::embed {
namespace {

using model::expect_known;
using model::fill_by_name;
using model::gradient_cases;
using model::gradients_of;
using model::hash_of;
using model::hashed;
using model::ModelGradient;
using model::name_of_case;
using model::tiny_config;

TEST_P(ModelGradient, Embedding) {
  const auto weight_of = [](size_t sequence, size_t i) {
    return hashed(hash_of("embedding"), static_cast<uint32_t>(sequence * 100 + i));
  };
  using formats::SentencePooling;
  for (const SentencePooling mode : {SentencePooling::kMean, SentencePooling::kFirst}) {
    SCOPED_TRACE(formats::word_of(mode));
    const Pooling pooling{.modes = {mode}};
    EXPECT_TRUE(EmbeddingModel::is_trainable(pooling));
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
    model::ReferenceBert reference(config_, table);
    const auto loss = [&] {
      const auto vectors = mode == SentencePooling::kMean ? reference.mean_vectors(batch_, seed())
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

INSTANTIATE_TEST_SUITE_P(Model, ModelGradient, gradient_cases(), name_of_case);

TEST(EmbeddingModel, HeadsHaveKnownNames) {
  ParameterTable table;
  const EmbeddingModel model(tiny_config(true), {}, table);
  EXPECT_FALSE(EmbeddingModel::is_trainable({.modes = {formats::SentencePooling::kMax}}));
  expect_known(table);
}

}  // namespace
}  // namespace onebit::embed
