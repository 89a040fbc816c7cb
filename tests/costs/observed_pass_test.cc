#include "onebit/training/costs/observed_pass.h"

#include <gtest/gtest.h>

#include "onebit/math/model/memory_report.h"
#include "tests/model/small_family.h"

namespace onebit::costs {
namespace {

PassShape small_shape() {
  return {.model = {.vocab_size = 1000,
                    .hidden_size = 128,
                    .layers = 1,
                    .heads = 2,
                    .intermediate_size = 512,
                    .max_positions = 64},
          .memory = {},
          .sequences = 3,
          .length = 32,
          .masked = 5};
}

// Counted by the shapes of the layers: the last one computes what heads read, its five masked rows
// and the first.
TEST(ObservedPass, CountsTheProductsOfEachPart) {
  Context context = Context::cpu(1);
  const PassShape shape = small_shape();
  const PassParts work = observe_pass(context, shape, DType::kF32, 0).work;
  const double h = 128, wide = 512, rows = 3 * 32, read = 3 * 6, masked = 3 * 5, words = 1024;
  const double layer = 2 * rows * 3 * h * h + 2 * read * (h * h + 2 * h * wide);
  const double words_head = 2 * masked * h * (h + words);
  const double pairs_head = 2 * 3 * h * (h + 2);
  EXPECT_DOUBLE_EQ(work.encoder.products, 2 * layer);
  EXPECT_DOUBLE_EQ(work.forward.products + work.heads.products,
                   layer + 3 * words_head + 3 * pairs_head);
  const double scores = 2 * 3 * 32 * 32 * h;  // of one product with a third of qkv
  EXPECT_DOUBLE_EQ(work.forward.attention, 2 * scores);
  EXPECT_DOUBLE_EQ(work.encoder.attention, 5 * scores);
  EXPECT_EQ(work.embeddings.products, 0);
  EXPECT_GT(work.forward.rest, 0);
  EXPECT_GT(work.encoder.rest, 0);
  EXPECT_GT(work.embeddings.rest, 0);
}

// A bias of scores is made of its buckets once for all sequences of a pass, in either direction.
double flops_of_a_pass(const model::EncoderConfig& config) {
  const int64_t distances = 2 * config.max_positions - 1;
  return 2.0 * 2.0 * static_cast<double>(config.choices.score_buckets * config.heads * distances);
}

// What `training_flops` says of a recipe, operation by operation, where heads read every row.
// Attention's backward pass computes the scores again.
TEST(ObservedPass, CountsTheOperationsOfEveryFamily) {
  Context context = Context::cpu(1);
  for (const std::string& family : model::all_families()) {
    constexpr int64_t kTokens = 90;
    const model::EncoderConfig config = model::small_family(family);
    const PassParts work = observe_pass(context,
                                        {.model = config,
                                         .heads = model::PreTrainingHeads::kMaskedWords,
                                         .memory = {},
                                         .sequences = 3,
                                         .length = kTokens,
                                         .masked = kTokens},
                                        DType::kF32, 0)
                               .work;
    const ByKind all = work.forward + work.backward();
    const double formula =
        3 * model::training_flops(config, kTokens, kTokens) + flops_of_a_pass(config);
    EXPECT_NEAR((all.products + 6.0 / 7 * all.attention) / formula, 1, 1e-12) << family;
    EXPECT_DOUBLE_EQ(2 * work.encoder.attention, 5 * work.forward.attention) << family;
  }
}

TEST(ObservedPass, CountsLayersThatAreRunAgain) {
  Context context = Context::cpu(1);
  PassShape shape = small_shape();
  shape.model.layers = 2;
  const PassParts kept = observe_pass(context, shape, DType::kF32, 0).work;
  shape.memory.full_recomputation = true;
  const PassParts again = observe_pass(context, shape, DType::kF32, 0).work;
  EXPECT_DOUBLE_EQ(again.forward.products, kept.forward.products);
  EXPECT_GT(again.encoder.products, 1.3 * kept.encoder.products);
}

TEST(ObservedPass, TimesWhatItCounts) {
  Context context = Context::cpu(1);
  const ObservedPass pass = observe_pass(context, small_shape(), DType::kBF16, 0.05);
  for (const ByKind& part : {pass.seconds.forward, pass.seconds.backward()}) {
    EXPECT_GT(part.products, 0);
    EXPECT_GT(part.attention, 0);
    EXPECT_GT(part.rest, 0);
    EXPECT_LT(part.sum(), 10);
  }
  EXPECT_EQ(context.profile_track(), nullptr);
}

TEST(ByKind, DividesKindByKind) {
  const ByKind rates = ByKind{10, 0, 6} / ByKind{5, 0, 3};
  EXPECT_EQ(rates.products, 2);
  EXPECT_EQ(rates.attention, 0) << "no work takes no time";
  EXPECT_EQ(rates.rest, 2);
}

}  // namespace
}  // namespace onebit::costs
