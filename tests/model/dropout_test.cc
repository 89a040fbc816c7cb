// Masks belong to tokens, not to micro-batches, so the split of a batch changes nothing.
#include <gtest/gtest.h>

#include <set>

#include "onebit/math/model/pretraining_model.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {
namespace {

class ModelDropout : public ::testing::Test {
 protected:
  ModelDropout() : config_(tiny_config(false)) {
    config_.hidden_dropout = 0.3;
    config_.attention_dropout = 0.3;
    batch_ = random_batch(config_, {5, 2, 9, 4}, 11);
  }

  double loss(TinyBatch& batch, uint64_t seed) {
    const TrainingPass pass{.dropout_seed = seed, .loss_scale = 1, .gradients_ready = {}};
    return model_->forward_backward(context_, batch.view(), {1, 1}, pass).mlm_loss_sum;
  }

  void build() {
    model_ = std::make_unique<PreTrainingModel>(config_, table_, PreTrainingHeads::kBoth);
    fill_by_name(table_, DType::kF32);
    model_->plan(context_, batch_.limits(), {}, true);
  }

  EncoderConfig config_;
  TinyBatch batch_;
  ParameterTable table_;
  Context context_ = Context::cpu(1);
  std::unique_ptr<PreTrainingModel> model_;
};

TEST_F(ModelDropout, SplitIntoMicroBatchesKeepsTheMasks) {
  build();
  const double whole = loss(batch_, 1);
  const Gradients expected = gradients_of(table_);
  clear_gradients(table_);
  TinyBatch first = batch_.part(0, 3), second = batch_.part(3, 4);
  EXPECT_NEAR(loss(first, 1) + loss(second, 1), whole, 2e-6 * whole);
  expect_close(gradients_of(table_), expected, 1e-5);
}

TEST_F(ModelDropout, SeedAndRowKeysChangeTheMasks) {
  build();
  std::set<double> losses{loss(batch_, 1), loss(batch_, 2)};
  for (uint64_t& key : batch_.row_keys) key += uint64_t{1} << 40;
  losses.insert(loss(batch_, 1));
  config_.hidden_dropout = 0;
  config_.attention_dropout = 0;
  table_ = ParameterTable();
  build();
  losses.insert(loss(batch_, 1));
  EXPECT_EQ(losses.size(), 4u);
}

TEST_F(ModelDropout, PassesRepeatBitForBit) {
  build();
  const double once = loss(batch_, 1);
  const Gradients gradients = gradients_of(table_);
  clear_gradients(table_);
  EXPECT_EQ(loss(batch_, 1), once);
  expect_equal(gradients_of(table_), gradients);
}

}  // namespace
}  // namespace onebit::model
