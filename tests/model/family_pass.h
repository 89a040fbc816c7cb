// A pass of a small model of each family in 16 bits and on a CUDA device, against the same pass in
// f32 on the CPU. Dropout is on, since its masks are the same everywhere.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "onebit/math/device/memory.h"
#include "onebit/math/ops/elementwise.h"
#include "tests/model/cuda_pass.h"
#include "tests/model/small_family.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {

struct FamilyPlace {
  std::string family;
  DType compute = DType::kF32;
  bool on_cuda = false;
};

inline void PrintTo(const FamilyPlace& place, std::ostream* out) {
  *out << place.family << " in " << name_of(place.compute);
}
inline std::string name_of_place(const ::testing::TestParamInfo<FamilyPlace>& tested) {
  return family_test_name(tested.param.family) + "_" + std::string(name_of(tested.param.compute));
}

inline std::vector<FamilyPlace> cpu_places() {
  std::vector<FamilyPlace> places;
  for (const std::string& family : all_families()) places.push_back({family, DType::kBF16, false});
  return places;
}
inline std::vector<FamilyPlace> cuda_places() {
  std::vector<FamilyPlace> places;
  for (const std::string& family : all_families()) {
    for (const DType compute : {DType::kF32, DType::kBF16}) {
      places.push_back({family, compute, true});
    }
  }
  return places;
}

struct PassOutcome {
  double loss = 0;
  std::vector<double> outputs;
  Gradients gradients;
};

// Rounding must not switch a unit of a classifier's ReLU (DistilBERT's) on or off: half of them are
// always on, and the others off.
inline void keep_units_from_zero(const EncoderConfig& config, ParameterTable& table) {
  if (config.choices.sequence_activation != ChosenActivation::kRelu) return;
  for (const ParameterEntry& entry : table.entries()) {
    if (entry.name != "bert.pooler.dense.bias") continue;
    float* values = table.value_of(entry).data<float>();
    for (int64_t i = 0; i < entry.shape.elements(); ++i) values[i] += i % 2 == 0 ? 8.0f : -8.0f;
  }
}

// With `make`(config, table) a model and `run`(model, context, batch, outcome) its loss and
// outputs.
template <class Make, class ViewOf, class Run>
PassOutcome outcome_of(Context& context, DType compute, const EncoderConfig& config,
                       const Make& make, const ViewOf& view, const Run& run) {
  ParameterTable drawn, table;
  [[maybe_unused]] const auto declared = make(config, drawn);
  fill_by_name(drawn, DType::kF32);
  keep_units_from_zero(config, drawn);
  auto model = make(config, table);
  table.allocate(context.device(), compute);
  copy(table.values(), drawn.values());
  if (compute != DType::kF32) {
    ops::cast(context, {.from = table.values(), .to = table.compute_values()});
  }
  // Tiles of keys with and without an end of a window, and a sequence of one token.
  TinyBatch host = random_batch(config, {90, 2, 41}, 7);
  const Placed placed(context.device(), view(host));
  model->plan(context, host.limits(), {}, true);
  ops::fill(context, table.gradients(), 0);
  PassOutcome outcome;
  run(*model, context, placed.batch(), outcome);
  for (const ParameterEntry& entry : table.entries()) {
    const Tensor gradient = to_cpu_f32(table.gradient_of(entry));
    const float* values = gradient.data<float>();
    outcome.gradients[entry.name] = {values, values + gradient.shape().elements()};
  }
  return outcome;
}

class FamilyPasses : public ::testing::TestWithParam<FamilyPlace> {
 protected:
  // Where few rows have a loss, as in a classifier, roundings do not average out: in bf16 up to
  // 2.0 % of the whole gradient and 4.4 % of a tensor's were seen.
  bool has_few_labels_ = false;

  void SetUp() override {
    if (GetParam().on_cuda && memory::cuda_device_count() == 0) {
      GTEST_SKIP() << "no CUDA device here";
    }
  }

  // `without_gradient`: tensors on which the loss does not depend, so that rounding is all that
  // their gradients have.
  template <class Make, class ViewOf, class Run>
  void compare_with_f32(const Make& make, const ViewOf& view, const Run& run,
                        const std::vector<std::string>& without_gradient = {}) {
    const FamilyPlace& place = GetParam();
    EncoderConfig config = small_family(place.family);
    config.hidden_dropout = config.attention_dropout = 0.1;
    Context cpu = Context::cpu(2), there = place.on_cuda ? Context::cuda(0) : Context::cpu(2);
    PassOutcome expected = outcome_of(cpu, DType::kF32, config, make, view, run);
    PassOutcome got = outcome_of(there, place.compute, config, make, view, run);
    // As in cuda_parity_test.cc and golden_wide_test.cc.
    const double tolerance = place.compute == DType::kF32 ? 1e-4 : 2e-2;
    EXPECT_GT(expected.loss, 0);
    EXPECT_NEAR(got.loss, expected.loss, tolerance * expected.loss);
    ASSERT_EQ(got.outputs.size(), expected.outputs.size());
    std::vector<double> difference = got.outputs;
    for (size_t i = 0; i < difference.size(); ++i) difference[i] -= expected.outputs[i];
    EXPECT_LE(norm_of(difference), tolerance * norm_of(expected.outputs));
    for (const std::string& name : without_gradient) {
      expected.gradients.erase(name);
      got.gradients.erase(name);
    }
    if (place.compute != DType::kF32) {
      // A little more is rounded in gradients of queries and keys, differences of larger terms.
      const double of_all = has_few_labels_ ? 3e-2 : 2e-2, of_one = has_few_labels_ ? 6e-2 : 3e-2;
      expect_close_as_a_whole(got.gradients, expected.gradients, of_all);
      expect_close(got.gradients, expected.gradients, of_one);
    } else {
      expect_close(got.gradients, expected.gradients, tolerance);
    }
  }
};

inline void append_outputs(PassOutcome& outcome, const Tensor& rows) {
  const float* values = rows.data<float>();
  outcome.outputs.assign(values, values + rows.shape().elements());
}

}  // namespace onebit::model
