// Ranges of gradients are announced from the end of the buffer to its beginning, each complete, and
// values of an earlier update have been overwritten or cleared by then.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/elementwise.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {

// The parameter is EncoderChoices::norm_before.
class GradientsAnnounced : public ::testing::TestWithParam<bool> {
 protected:
  GradientsAnnounced() : config_(tiny_config(GetParam())) {
    batch_ = random_batch(config_, {5, 2, 9, 4}, 11);
    limits_ = batch_.limits();
  }

  // Keeps a copy of each range as it is announced.
  TrainingPass watching_pass() {
    return {.dropout_seed = 0, .loss_scale = 1, .gradients_ready = [this](Range range) {
              const float* all = table_.gradients().data<float>();
              ranges_.push_back(range);
              seen_.emplace_back(all + range.begin, all + range.end);
            }};
  }

  // Two halves of each layer, the heads, the embeddings.
  void check() const { check(static_cast<size_t>(2 + 2 * config_.layers)); }
  void check(size_t ranges) const {
    int64_t end = table_.size_elements();
    const float* all = table_.gradients().data<float>();
    for (size_t i = 0; i < ranges_.size(); ++i) {
      EXPECT_EQ(ranges_[i].end, end);
      EXPECT_LT(ranges_[i].begin, ranges_[i].end);
      end = ranges_[i].begin;
      const std::vector<float> now(all + ranges_[i].begin, all + ranges_[i].end);
      EXPECT_EQ(seen_[i], now) << "range " << i << " changed after it was announced";
    }
    EXPECT_EQ(end, 0);
    EXPECT_EQ(ranges_.size(), ranges);
  }

  void clear(const std::vector<Range>& ranges) {
    float* all = table_.gradients().data<float>();
    for (const Range& range : ranges) std::fill(all + range.begin, all + range.end, 0.0f);
  }

  // Two passes give the same gradients whether the buffer holds zeros or old numbers at the start.
  void check_begin_of_update(const std::function<void(const TrainingPass&)>& run) {
    const TrainingPass plain{.dropout_seed = 0, .loss_scale = 1, .gradients_ready = {}};
    clear_gradients(table_);
    for (int i = 0; i < 2; ++i) run(plain);
    const Gradients wanted = gradients_of(table_);
    StaleGradients& stale = table_.stale_gradients();
    ops::fill(context_, table_.gradients(), std::nanf(""));
    const std::vector<Range> cleared = stale.begin_update(table_.size_elements());
    int64_t count = 0;
    for (const Range& range : cleared) count += range.elements();
    EXPECT_LT(count, table_.size_elements() * 3 / 4) << "most of it is matrices";
    clear(cleared);
    TrainingPass first = plain;
    first.gradients_ready = [&](Range range) { clear(stale.take(range)); };
    run(first);
    EXPECT_TRUE(stale.take(Range{0, table_.size_elements()}).empty());
    run(plain);
    expect_equal(gradients_of(table_), wanted);
  }

  // Both checks of a model, with the `weights` of its loss.
  template <class Model, class Weights>
  void check_passes_of(Model& model, Weights weights, const DeviceBatch& batch) {
    fill_by_name(table_, DType::kF32);
    model.plan(context_, limits_, {}, true);
    const auto run = [&](const TrainingPass& pass) {
      model.forward_backward(context_, batch, weights, pass);
    };
    run(watching_pass());
    check();
    check_begin_of_update(run);
  }

  EncoderConfig config_;
  TinyBatch batch_;
  BatchLimits limits_;  // of the batch as drawn
  ParameterTable table_;
  Context context_ = Context::cpu(2);
  std::vector<Range> ranges_;
  std::vector<std::vector<float>> seen_;
};

inline std::string name_of_order(const ::testing::TestParamInfo<bool>& tested) {
  return tested.param ? "PreLn" : "PostLn";
}

}  // namespace onebit::model
