#include "onebit/data/batches/batch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"

namespace onebit::batches {
namespace {

class EvaluationStreamTest : public ::testing::Test {
 protected:
  EvaluationStreamTest()
      : store_(corpus::make_store(folder_ / "store", corpus::sample_documents(30, 21))) {}

  // The tokens of every sample over all ranks.
  std::map<uint64_t, std::vector<int32_t>> collect(EvaluationOptions options) {
    std::map<uint64_t, std::vector<int32_t>> found;
    for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
      EvaluationStream stream(store_, options);
      Batch batch;
      for (int64_t index = 0; index < stream.batches(); ++index) {
        stream.build(index, batch);
        EXPECT_GE(batch.sequences(), 1);
        EXPECT_LE(batch.sequences(), options.batch);
        for (size_t i = 0; i < batch.samples.size(); ++i) {
          const auto begin = batch.tokens.begin() + batch.sequence_starts[i];
          const auto end = batch.tokens.begin() + batch.sequence_starts[i + 1];
          EXPECT_TRUE(found.emplace(batch.samples[i], std::vector<int32_t>(begin, end)).second);
        }
      }
    }
    return found;
  }

  TemporaryFolder folder_;
  std::shared_ptr<const corpus::TokenStore> store_;
};

TEST_F(EvaluationStreamTest, VisitsEverySampleOnceOnAnyNumberOfRanks) {
  const auto one = collect({.batch = 32});
  EvaluationStream stream(store_, {.batch = 32});
  ASSERT_EQ(one.size(), stream.samples());
  ASSERT_NE(one.size() % 7, 0u);  // so that a short batch is met below
  for (const int world_size : {2, 3, 5}) {
    EXPECT_EQ(collect({.world_size = world_size, .batch = 7}), one);
  }
}

TEST_F(EvaluationStreamTest, IsTheSameEveryTime) {
  EXPECT_EQ(collect({.batch = 16}), collect({.batch = 16}));
  EXPECT_NE(collect({.seed = 1, .batch = 16}), collect({.batch = 16}));
}

TEST_F(EvaluationStreamTest, CanStopEarly) {
  const auto all = collect({.batch = 8});
  const auto some = collect({.world_size = 2, .batch = 8, .max_samples = 21});
  ASSERT_EQ(some.size(), 21u);
  for (const auto& [sample, tokens] : some) EXPECT_EQ(tokens, all.at(sample));
}

TEST_F(EvaluationStreamTest, MayLeaveARankWithoutWork) {
  EvaluationStream stream(store_, {.world_size = 4, .rank = 3, .batch = 10, .max_samples = 25});
  EXPECT_EQ(stream.batches(), 0);
}

TEST_F(EvaluationStreamTest, RefusesOptionsOutOfRange) {
  EXPECT_THAT(message_of([&] { EvaluationStream(store_, {.batch = 0}); }),
              testing::HasSubstr("evaluation batch is 0"));
  EXPECT_THAT(message_of([&] { EvaluationStream(store_, {.max_samples = -1}); }),
              testing::HasSubstr("max_samples is -1"));
  EXPECT_THAT(message_of([&] { EvaluationStream(store_, {.world_size = 1, .rank = 1}); }),
              testing::HasSubstr("rank 1 of 1"));
}

}  // namespace
}  // namespace onebit::batches
