// Compares the schedule with its formula, and losses and gradients of models with dropped layers
// with central differences. Dropped layers are neither computed nor read.
#include "onebit/math/model/layer_drop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/base/json.h"
#include "onebit/math/device/profile.h"
#include "onebit/math/model/pretraining_model.h"
#include "tests/base/message_of.h"
#include "tests/model/reference_bert.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {
namespace {

constexpr LayerDropOptions kUsual = {.enabled = true, .theta = 0.5, .gamma = 0.001};

LayerDropOptions parse(const std::string& text) {
  Keys keys(parse_json(text, "recipe"), "recipe");
  const LayerDropOptions options = read_layer_drop(keys);
  keys.check();
  return options;
}

TEST(LayerDropKeys, AreDeepSpeeds) {
  EXPECT_EQ(parse("{}"), LayerDropOptions());
  EXPECT_EQ(parse(R"({"progressive_layer_drop": {"enabled": true}})"), kUsual);
  const LayerDropOptions given =
      parse(R"({"progressive_layer_drop": {"enabled": true, "theta": 0.25, "gamma": 0.01}})");
  EXPECT_EQ(given.theta, 0.25);
  EXPECT_EQ(given.gamma, 0.01);
}

TEST(LayerDropKeys, WhatIsWrongIsOneLine) {
  const auto error_of = [](const std::string& section) {
    return message_of([&] { parse(R"({"progressive_layer_drop": )" + section + "}"); });
  };
  EXPECT_EQ(error_of(R"({"enabled": true, "theta": 1.5})"),
            "recipe: key `progressive_layer_drop.theta` is 1.5; it must be a number from 0 to 1");
  EXPECT_NE(error_of(R"({"gamma": -1})").find("`progressive_layer_drop.gamma` is -1"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"gama": 1})").find("did you mean \"gamma\"?"), std::string::npos);
  EXPECT_NE(error_of("true").find("key `progressive_layer_drop` is true"), std::string::npos);
}

// Figures made by hand: exp(-0.5) = 0.60653..., at 1000 steps exp(-1) = 0.36787...
TEST(LayerDrop, FollowsItsSchedule) {
  const LayerDrop drop(kUsual, 12);
  EXPECT_EQ(drop.theta(0), 1);
  EXPECT_NEAR(drop.theta(500), 0.5 + 0.5 * 0.6065306597126334, 1e-15);
  EXPECT_NEAR(drop.theta(1000), 0.5 + 0.5 * 0.36787944117144233, 1e-15);
  EXPECT_NEAR(drop.theta(1000000), 0.5, 1e-15);
  for (const int64_t step : {0, 1, 700, 90000}) {
    EXPECT_EQ(drop.probability(0, step), 1);
    for (int64_t layer = 0; layer < 12; ++layer) {
      EXPECT_NEAR(drop.probability(layer, step),
                  1 - static_cast<double>(layer) / 12 * (1 - drop.theta(step)), 1e-15);
    }
  }
  EXPECT_EQ(LayerDrop({}, 12).probability(11, 90000), 1);
}

TEST(LayerDrop, ItsMeanIsThatOfItsSteps) {
  for (const LayerDropOptions& options :
       {kUsual, LayerDropOptions{.enabled = true, .theta = 0, .gamma = 0.3},
        LayerDropOptions{.enabled = true, .theta = 0.7, .gamma = 0}, LayerDropOptions()}) {
    const LayerDrop drop(options, 7);
    for (const auto& [from, to] : {std::pair(0, 1), std::pair(0, 900), std::pair(13, 2000)}) {
      double sum = 0;
      for (int step = from; step < to; ++step) {
        for (int64_t layer = 0; layer < 7; ++layer) sum += drop.probability(layer, step);
      }
      const double mean = sum / static_cast<double>(to - from);
      EXPECT_NEAR(drop.mean_layers(from, to), mean, 1e-11) << from << " to " << to;
    }
  }
  EXPECT_EQ(LayerDrop(kUsual, 7).mean_layers(5, 5), 7);
}

// A layer's output is multiplied by 0 or 1 / p, in the mean by 1 for any p. With the factor of the
// next layer's probability, the last of these means would be wrong by a twelfth.
TEST(LayerDrop, FactorsHaveTheMeanOne) {
  const LayerDrop drop({.enabled = true, .theta = 0.25, .gamma = 1}, 6);
  constexpr int kDraws = 40000;
  std::vector<double> sum(6, 0), computed(6, 0);
  std::vector<float> factors(6);
  for (int i = 0; i < kDraws; ++i) {
    drop.draw(7, 1000 + i / 4, i % 4, factors);
    for (size_t layer = 0; layer < 6; ++layer) {
      sum[layer] += double{factors[layer]} / kDraws;
      computed[layer] += factors[layer] != 0 ? 1.0 / kDraws : 0.0;
    }
  }
  EXPECT_NEAR(sum[0], 1, 1e-9);
  for (size_t layer = 1; layer < 6; ++layer) {
    const double p = drop.probability(static_cast<int64_t>(layer), 1000);
    const double deviation = std::sqrt((1 - p) / p / kDraws);  // of the mean of the factors
    EXPECT_NEAR(sum[layer], 1, 5 * deviation) << layer;
    EXPECT_NEAR(computed[layer], p, 5 * p * deviation) << layer;
  }
}

TEST(LayerDrop, DrawsDependOnSeedStepAndMicroStepAlone) {
  const LayerDrop drop({.enabled = true, .theta = 0.1, .gamma = 1}, 24);
  const auto draw = [&](uint64_t seed, int64_t step, int64_t micro_step) {
    std::vector<float> factors(24, -1.0f);
    drop.draw(seed, step, micro_step, factors);
    return factors;
  };
  EXPECT_EQ(draw(3, 50, 1), draw(3, 50, 1));
  const int64_t far = int64_t{1} << 40;  // theta is the same at all these steps
  const std::set<std::vector<float>> different = {draw(3, 50, 1), draw(3, 50, 2), draw(3, 51, 1),
                                                  draw(4, 50, 1), draw(3, 50 + far, 1)};
  EXPECT_EQ(different.size(), 5u);
  const std::vector<float> first = draw(3, 0, 0);
  EXPECT_EQ(first, std::vector<float>(24, 1.0f));  // theta starts at 1
}

// Three layers of five, with or without the last one, which computes only the rows that heads read.
const std::vector<float> kLastLeftOut = {1, 0, 1.25f, 1.6f, 0};
const std::vector<float> kLastComputed = {1, 1.25f, 0, 0, 1.6f};

class LayersLeftOut : public ::testing::TestWithParam<std::vector<float>> {
 protected:
  LayersLeftOut() : config_(tiny_config(true)) {
    config_.layers = 5;
    batch_ = random_batch(config_, {4, 7, 2}, 7);
  }

  struct Outcome {
    PreTrainingModel::Result result;
    Gradients gradients;
  };
  Outcome run(const std::vector<float>& factors, const MemoryOptions& memory = {},
              DType compute = DType::kF32) {
    ParameterTable table;
    PreTrainingModel model(config_, table, PreTrainingHeads::kBoth);
    fill_by_name(table, compute);
    spoil(table, factors);
    model.plan(context_, batch_.limits(), memory, true);
    Outcome done;
    done.result = model.forward_backward(context_, batch_.view(), weights_, pass(factors));
    done.gradients = gradients_of(table);
    return done;
  }
  TrainingPass pass(const std::vector<float>& factors) const {
    TrainingPass pass{.dropout_seed = 99, .loss_scale = 1, .gradients_ready = {}};
    pass.layer_factors = factors;
    return pass;
  }
  static std::string prefix(size_t layer) { return fmt::format("bert.encoder.layer.{}.", layer); }
  static bool is_left_out(const std::string& name, const std::vector<float>& factors) {
    for (size_t layer = 0; layer < factors.size(); ++layer) {
      if (factors[layer] == 0 && name.starts_with(prefix(layer))) return true;
    }
    return false;
  }
  // Reading such a value would change results.
  static void spoil(const ParameterTable& table, const std::vector<float>& factors) {
    for (const ParameterEntry& entry : table.entries()) {
      if (!is_left_out(entry.name, factors)) continue;
      const View values = table.value_of(entry);
      std::fill_n(values.data<float>(), values.elements(), std::numeric_limits<float>::quiet_NaN());
    }
  }
  // Checks that gradients of dropped layers are zero, and removes them.
  static Gradients of_computed(Gradients gradients, const std::vector<float>& factors) {
    std::erase_if(gradients, [&](const auto& one) {
      if (!is_left_out(one.first, factors)) return false;
      EXPECT_EQ(norm_of(one.second), 0) << one.first;
      return true;
    });
    return gradients;
  }

  EncoderConfig config_;
  TinyBatch batch_;
  PreTrainingModel::LossWeights weights_{.masked_lm = 0.3, .next_sentence = 0.7};
  Context context_ = Context::cpu(2);
};

TEST_P(LayersLeftOut, LossesAndGradientsAreThoseOfTheFormula) {
  for (const double dropout : {0.0, 0.2}) {
    config_.hidden_dropout = config_.attention_dropout = dropout;
    const Outcome got = run(GetParam());
    ParameterTable table;
    const PreTrainingModel declared(config_, table, PreTrainingHeads::kBoth);
    fill_by_name(table, DType::kF32);
    ReferenceBert reference(config_, table);
    reference.set_layer_factors(GetParam());
    const ReferenceBert::DropoutSeed seed =
        dropout > 0 ? ReferenceBert::DropoutSeed(99) : std::nullopt;
    const auto expected = reference.pretraining(batch_, seed);
    // As in gradient_test.cc.
    constexpr double kTolerance = 1e-5;
    EXPECT_NEAR(got.result.mlm_loss_sum, expected.masked_lm, kTolerance * expected.masked_lm);
    EXPECT_NEAR(got.result.nsp_loss_sum, expected.next_sentence,
                kTolerance * expected.next_sentence);
    const Gradients differences = reference.differences([&] {
      const auto loss = reference.pretraining(batch_, seed);
      return weights_.masked_lm * loss.masked_lm + weights_.next_sentence * loss.next_sentence;
    });
    expect_close(of_computed(got.gradients, GetParam()), of_computed(differences, GetParam()),
                 kTolerance);
  }
}

TEST_P(LayersLeftOut, MemoryOptionsKeepLossesAndGradients) {
  config_.hidden_dropout = config_.attention_dropout = 0.1;
  const Outcome plain = run(GetParam());
  for (int bits = 1; bits < 8; ++bits) {
    SCOPED_TRACE(bits);
    const MemoryOptions options = {.gelu_checkpoint = (bits & 1) != 0,
                                   .normalize_invertible = (bits & 2) != 0,
                                   .full_recomputation = (bits & 4) != 0};
    const Outcome chosen = run(GetParam(), options);
    EXPECT_EQ(chosen.result.mlm_loss_sum, plain.result.mlm_loss_sum);
    if (options.normalize_invertible) {
      expect_close(of_computed(chosen.gradients, GetParam()),
                   of_computed(plain.gradients, GetParam()), 1e-5);
    } else {
      expect_equal(chosen.gradients, plain.gradients);
    }
  }
}

TEST_P(LayersLeftOut, InBf16) {
  const Outcome exact = run(GetParam()), rounded = run(GetParam(), {}, DType::kBF16);
  EXPECT_NEAR(rounded.result.mlm_loss_sum, exact.result.mlm_loss_sum,
              2e-2 * exact.result.mlm_loss_sum);
  expect_close_as_a_whole(of_computed(rounded.gradients, GetParam()),
                          of_computed(exact.gradients, GetParam()), 2e-2);
}

// A pass has the operations of a model with only the layers that are computed.
TEST_P(LayersLeftOut, AreNotComputed) {
  const auto work_of = [&](int64_t layers, const std::vector<float>& factors) {
    config_.layers = layers;
    Profile profile;
    context_.set_profile_track(&profile.track("pass"));
    profile.start({});
    run(factors);
    profile.stop();
    context_.set_profile_track(nullptr);
    std::map<std::string, std::pair<int64_t, double>> work;
    for (const ProfileSum& sum : profile.tracks().front()->sums()) {
      if (sum.place.operation == nullptr) continue;
      auto& [calls, amount] = work[sum.place.operation];
      calls += sum.calls;
      amount += sum.work.flops + sum.work.bytes;
    }
    return work;
  };
  std::vector<float> pattern = GetParam();  // a factor writes one gradient more
  for (float& factor : pattern) factor = factor != 0 ? 1.0f : 0.0f;
  const auto whole = work_of(5, {}), some = work_of(5, pattern), short_model = work_of(3, {});
  EXPECT_EQ(some, short_model);
  EXPECT_LT(some.at("matrix_product").second, whole.at("matrix_product").second);
}

TEST_P(LayersLeftOut, OnlyInPassesThatSaySo) {
  ParameterTable table;
  PreTrainingModel model(config_, table, PreTrainingHeads::kBoth);
  fill_by_name(table, DType::kF32);
  model.plan(context_, batch_.limits(), {}, true);
  const auto loss = [&](const std::vector<float>& factors) {
    return model.forward_backward(context_, batch_.view(), weights_, pass(factors)).mlm_loss_sum;
  };
  const double whole = loss({}), evaluated = model.evaluate(context_, batch_.view()).mlm_loss_sum;
  EXPECT_EQ(evaluated, whole);  // no dropout
  EXPECT_EQ(loss(std::vector<float>(5, 1.0f)), whole);
  EXPECT_NE(loss(GetParam()), whole);
  EXPECT_EQ(model.evaluate(context_, batch_.view()).mlm_loss_sum, evaluated);
  EXPECT_EQ(loss({}), whole);
}

INSTANTIATE_TEST_SUITE_P(Model, LayersLeftOut, ::testing::Values(kLastLeftOut, kLastComputed),
                         [](const auto& tested) {
                           return tested.param.back() == 0 ? "TheLastToo" : "ButNotTheLast";
                         });

// The mean of the losses over all patterns, weighted with their probabilities, is close to the loss
// of the evaluation, because the factor preserves the expected output of layers.
TEST(LayerDrop, KeepsTheExpectationOfWhatLayersAdd) {
  EncoderConfig config = tiny_config(true);
  config.layers = 4;
  TinyBatch batch = random_batch(config, {9, 9, 9, 8}, 5);
  Context context = Context::cpu(2);
  ParameterTable table;
  PreTrainingModel model(config, table, PreTrainingHeads::kBoth);
  fill_by_name(table, DType::kF32);
  model.plan(context, batch.limits(), {}, true);
  const LayerDrop drop({.enabled = true, .theta = 0.2, .gamma = 1}, 4);
  constexpr int64_t kStep = 1000;
  const auto mean_loss = [&](bool scaled) {
    double mean = 0;
    for (unsigned pattern = 0; pattern < 8; ++pattern) {
      std::vector<float> factors = {1, 0, 0, 0};
      double probability = 1;
      for (unsigned layer = 1; layer < 4; ++layer) {
        const double p = drop.probability(layer, kStep);
        const bool computed = (pattern >> (layer - 1) & 1) != 0;
        probability *= computed ? p : 1 - p;
        factors[layer] = computed ? static_cast<float>(scaled ? 1 / p : 1) : 0.0f;
      }
      TrainingPass pass{.dropout_seed = 0, .loss_scale = 1, .gradients_ready = {}};
      pass.layer_factors = factors;
      mean += probability *
              model.forward_backward(context, batch.view(), {.masked_lm = 1}, pass).mlm_loss_sum;
    }
    return mean;
  };
  const double evaluated = model.evaluate(context, batch.view()).mlm_loss_sum;
  const double with = std::abs(mean_loss(true) - evaluated);
  const double without = std::abs(mean_loss(false) - evaluated);
  EXPECT_LT(with, 0.5 * without) << with << " and " << without << " of " << evaluated;
}

}  // namespace
}  // namespace onebit::model
