// The arithmetic of the predicted step, compared with figures computed by hand.
#include "onebit/training/costs/step_prediction.h"

#include <gtest/gtest.h>

namespace onebit::costs {
namespace {

constexpr int64_t kBlock = comm::kBlockElements;

// Four buckets of one block, whose gradients are ready at 1, 2, 3 and, the embeddings, 4 seconds.
comm::Buckets four_buckets() {
  return {4 * kBlock, kBlock * 4};
}

PassTimes even_pass() {
  PassTimes pass{.forward_seconds = 2, .backward_seconds = 4, .ready = {}};
  for (int64_t i = 3; i >= 0; --i) {
    pass.ready.push_back({{i * kBlock, (i + 1) * kBlock}, 4.0 - static_cast<double>(i)});
  }
  return pass;
}

TEST(ReadySeconds, ABucketWaitsForAllOfItselfAndForThoseBefore) {
  PassTimes pass{.forward_seconds = 1, .backward_seconds = 9, .ready = {}};
  pass.ready = {{{3 * kBlock, 4 * kBlock - 8}, 1},  // a part of bucket 0
                {{2 * kBlock, 3 * kBlock}, 2},      // bucket 1, before bucket 0
                {{4 * kBlock - 8, 4 * kBlock}, 3},  // the rest of bucket 0
                {{kBlock - 100, 2 * kBlock}, 4}};   // bucket 2 (bucket 3 is never announced)
  EXPECT_EQ(ready_seconds(four_buckets(), pass), (std::vector<double>{3, 3, 4, 9}));
}

// The heads end at 1 and the embeddings begin at 3, so layers take two seconds, and half as long in
// the forward pass.
TEST(ShareOfLayers, ShortensThePartOfTheLayers) {
  const PassTimes half = with_share_of_layers(even_pass(), 0.5);
  EXPECT_DOUBLE_EQ(half.backward_seconds, 3);
  EXPECT_DOUBLE_EQ(half.forward_seconds, 1.5);
  std::vector<double> seconds;
  for (const auto& ready : half.ready) seconds.push_back(ready.seconds);
  EXPECT_EQ(seconds, (std::vector<double>{1, 1.5, 2, 3}));
  EXPECT_DOUBLE_EQ(with_share_of_layers(even_pass(), 1).backward_seconds, 4);
}

TEST(StepPrediction, WithoutANetworkIsTheComputation) {
  const StepPrediction step =
      predict_step(four_buckets(), {.pass = even_pass(), .accumulation = 3, .update_seconds = 0.5});
  EXPECT_DOUBLE_EQ(step.step_seconds, 3 * 6 + 0.5);
  EXPECT_EQ(step.exchange_seconds, 0);
  EXPECT_EQ(step.waiting_seconds, 0);
}

TEST(StepPrediction, OnlyTheLastBucketIsSeenOfAFastExchange) {
  const StepPrediction step =
      predict_step(four_buckets(), {.pass = even_pass(), .bucket = {.wire_seconds = 0.75}});
  EXPECT_DOUBLE_EQ(step.exchange_seconds, 3);
  EXPECT_DOUBLE_EQ(step.waiting_seconds, 0.75);
  EXPECT_DOUBLE_EQ(step.step_seconds, 6.75);
}

TEST(StepPrediction, ASlowExchangeBeginsWithTheFirstBucketAndNeverRests) {
  const StepPrediction step = predict_step(
      four_buckets(), {.pass = even_pass(), .accumulation = 2, .bucket = {.wire_seconds = 10}});
  EXPECT_DOUBLE_EQ(step.step_seconds, 6 + 2 + 1 + 40);
  EXPECT_DOUBLE_EQ(step.waiting_seconds, 1 + 40 - 4);
}

TEST(StepPrediction, WithoutOverlapItComesBehindTheBackwardPass) {
  const StepPrediction step = predict_step(four_buckets(), {.pass = even_pass(),
                                                            .overlap = false,
                                                            .bucket = {.wire_seconds = 0.75},
                                                            .agreement_seconds = 0.25});
  EXPECT_DOUBLE_EQ(step.step_seconds, 6 + 3 + 0.25);
  EXPECT_DOUBLE_EQ(step.waiting_seconds, 3);
}

TEST(StepPrediction, CompressingTakesTheProcessorFromTheBackwardPass) {
  // Alone it delays the backward pass by the work for all buckets.
  const BucketCost cheap_wire{.wire_seconds = 0, .processor_seconds = 0.5};
  EXPECT_DOUBLE_EQ(
      predict_step(four_buckets(), {.pass = even_pass(), .bucket = cheap_wire}).step_seconds,
      6 + 4 * 0.5);
  // Without overlap the wire carries one bucket while the next is compressed. The longer of the two
  // determines the time, and the other adds one bucket.
  const PhaseCosts behind{.pass = even_pass(),
                          .overlap = false,
                          .bucket = {.wire_seconds = 2, .processor_seconds = 0.5}};
  EXPECT_DOUBLE_EQ(predict_step(four_buckets(), behind).step_seconds, 6 + 0.5 + 4 * 2);
}

TEST(StepPrediction, AShortLastBucketCostsItsShare) {
  const comm::Buckets buckets(3 * kBlock, 2 * kBlock * 4);  // of two blocks and of one
  const PassTimes pass{.forward_seconds = 1, .backward_seconds = 1, .ready = {}};
  EXPECT_DOUBLE_EQ(
      predict_step(buckets, {.pass = pass, .bucket = {.wire_seconds = 1}}).exchange_seconds, 1.5);
}

}  // namespace
}  // namespace onebit::costs
