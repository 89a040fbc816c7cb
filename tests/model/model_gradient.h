// Losses and gradients of a model against central differences of the formulas.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <string>

#include "onebit/math/model/training_pass.h"
#include "tests/model/reference_bert.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {

struct GradientCase {
  std::string name;
  bool pre_layer_norm = false;
  ChosenActivation activation = ChosenActivation::kGeluErf;
  double dropout = 0;
  DType compute = DType::kF32;
};

inline void PrintTo(const GradientCase& tested, std::ostream* out) {
  *out << tested.name;
}

// Each rounding has an error of half an epsilon, and there are some 60 roundings from an embedding
// to the loss and back. In the norm of a tensor they add like a random walk, so 1e-5 leaves an
// order of magnitude in f32. bf16's epsilon is 65536 times as large, but sums stay in f32: the
// models promise 2e-2. f16 has three more bits.
inline double tolerance(DType compute) {
  return compute == DType::kF32 ? 1e-5 : compute == DType::kF16 ? 2e-2 / 8 : 2e-2;
}

class ModelGradient : public ::testing::TestWithParam<GradientCase> {
 protected:
  ModelGradient() : config_(tiny_config(GetParam().pre_layer_norm)) {
    config_.choices.activation = config_.choices.head_activation = GetParam().activation;
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
  // Small tensors may cancel to little more than bf16's rounding. The golden test compares each of
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

  EncoderConfig config_;
  TinyBatch batch_;
  ParameterTable table_;
  Context context_ = Context::cpu(2);
};

// What every model is tested with.
inline auto gradient_cases() {
  return ::testing::Values(
      GradientCase{.name = "PostLn"}, GradientCase{.name = "PreLn", .pre_layer_norm = true},
      GradientCase{.name = "PostLnTanh", .activation = ChosenActivation::kGeluTanh},
      GradientCase{.name = "PostLnDropout", .dropout = 0.2},
      GradientCase{.name = "PreLnDropout", .pre_layer_norm = true, .dropout = 0.2},
      GradientCase{.name = "PostLnBf16", .compute = DType::kBF16},
      GradientCase{.name = "PostLnF16", .compute = DType::kF16},
      GradientCase{.name = "PreLnBf16", .pre_layer_norm = true, .compute = DType::kBF16});
}
inline std::string name_of_case(const ::testing::TestParamInfo<GradientCase>& tested) {
  return tested.param.name;
}

}  // namespace onebit::model
