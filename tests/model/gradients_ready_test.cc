// Ranges of gradients are announced from the end of the buffer to its beginning, each complete;
// values of an earlier update have been overwritten or cleared by then.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "onebit/math/model/classification_model.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/math/model/question_answering_model.h"
#include "onebit/math/model/tagging_model.h"
#include "onebit/math/ops/elementwise.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {
namespace {

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

  // Both checks of a model; `weights` are those of its loss.
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

  BertConfig config_;
  TinyBatch batch_;
  BatchLimits limits_;  // of the batch as drawn
  ParameterTable table_;
  Context context_ = Context::cpu(2);
  std::vector<Range> ranges_;
  std::vector<std::vector<float>> seen_;
};

TEST_P(GradientsAnnounced, ByPretraining) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
  check_passes_of(model, PreTrainingModel::LossWeights{1, 1}, batch_.view());
}

// The word embeddings' gradient then has only the look-ups, before which nothing overwrites it.
TEST_P(GradientsAnnounced, ByPretrainingWithoutMaskedWords) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
  batch_.masked_rows.clear();
  batch_.masked_targets.clear();
  check_passes_of(model, PreTrainingModel::LossWeights{1, 1}, batch_.view());
}

TEST_P(GradientsAnnounced, ByQuestionAnswering) {
  QuestionAnsweringModel model(config_, table_);
  check_passes_of(model, 1, batch_.view_of_spans());
}

TEST_P(GradientsAnnounced, ByClassification) {
  ClassificationModel model(config_, {.outputs = 3}, table_);
  check_passes_of(model, 1, batch_.view_of_classes());
}

TEST_P(GradientsAnnounced, ByTagging) {
  TaggingModel model(config_, {.outputs = 3}, table_);
  check_passes_of(model, 1, batch_.view_of_tags());
}

class GradientsAnnouncedPreLn : public GradientsAnnounced {};

// The zero gradients of a dropped layer belong to the range of the layer before, whose pass ends
// with the norm that is the last parameter there.
TEST_P(GradientsAnnouncedPreLn, WithLayersLeftOut) {
  config_.layers = 5;
  const std::vector<std::vector<float>> patterns = {
      {1, 0, 0, 2, 0}, {1, 0, 2, 0, 3}, {1, 0, 0, 0, 0}, {1, 1.5f, 2, 2.5f, 0}};
  for (const std::vector<float>& factors : patterns) {
    ranges_.clear();
    seen_.clear();
    table_ = ParameterTable();
    PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
    fill_by_name(table_, DType::kF32);
    model.plan(context_, batch_.limits(), {}, true);
    TrainingPass pass = watching_pass();
    pass.layer_factors = factors;
    model.forward_backward(context_, batch_.view(), {1, 1}, pass);
    const auto computed =
        factors.size() - static_cast<size_t>(std::count(factors.begin(), factors.end(), 0.0f));
    check(2 + 2 * computed);
    check_begin_of_update([&](TrainingPass pass_of_layers) {
      pass_of_layers.layer_factors = factors;
      model.forward_backward(context_, batch_.view(), {1, 1}, pass_of_layers);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Model, GradientsAnnounced, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "PreLn" : "PostLn"; });

INSTANTIATE_TEST_SUITE_P(Model, GradientsAnnouncedPreLn, ::testing::Values(true));

}  // namespace
}  // namespace onebit::model
