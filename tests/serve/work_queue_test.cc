#include "onebit/program/serve/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <thread>

namespace onebit::serve {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

using Places = std::vector<std::pair<const Work*, size_t>>;

Places places_of(const std::vector<Part>& batch) {
  Places places;
  for (const Part& part : batch) places.emplace_back(part.work.get(), part.index);
  return places;
}

std::shared_ptr<Work> work_of(std::vector<int64_t> tokens) {
  return std::make_shared<Work>(std::move(tokens));
}

std::vector<int64_t> sizes_of(const std::vector<Part>& batch) {
  std::vector<int64_t> sizes;
  for (const Part& part : batch) sizes.push_back(part.work->tokens(part.index));
  return sizes;
}

int64_t tokens_of(const std::vector<Part>& batch) {
  int64_t sum = 0;
  for (const int64_t size : sizes_of(batch)) sum += size;
  return sum;
}

bool is_done(Work& work) {
  return work.wait_for(milliseconds(0));
}

constexpr QueueLimits kHundred = {.batch_tokens = 100, .batch_parts = 8, .requests = 4};

TEST(WorkQueue, ABatchHasAsManyTokensAsFit) {
  WorkQueue queue(kHundred);
  const auto work = work_of({40, 50, 10, 1, 99, 100, 101, 5});
  EXPECT_EQ(queue.push(work), WorkQueue::Entry::kQueued);
  EXPECT_THAT(sizes_of(queue.take()), ElementsAre(40, 50, 10));
  EXPECT_THAT(sizes_of(queue.take()), ElementsAre(1, 99));
  EXPECT_THAT(sizes_of(queue.take()), ElementsAre(100));
  // A part with more tokens than a batch is one of its own.
  EXPECT_THAT(sizes_of(queue.take()), ElementsAre(101));
  EXPECT_THAT(sizes_of(queue.take()), ElementsAre(5));
}

TEST(WorkQueue, ABatchHasAsManyPartsAsFit) {
  WorkQueue queue(kHundred);
  queue.push(work_of(std::vector<int64_t>(10, 1)));
  EXPECT_EQ(queue.take().size(), 8u);
  EXPECT_EQ(queue.take().size(), 2u);
}

TEST(WorkQueue, RequestsShareABatchInTheirOrder) {
  WorkQueue queue(kHundred);
  const auto first = work_of({20, 20}), second = work_of({30}), third = work_of({10});
  for (const auto& work : {first, second, third}) queue.push(work);
  EXPECT_EQ(places_of(queue.take()),
            (Places{{first.get(), 0}, {first.get(), 1}, {second.get(), 0}, {third.get(), 0}}));
}

TEST(WorkQueue, ALongRequestLeavesHalfOfABatchToOthers) {
  WorkQueue queue({.batch_tokens = 100, .batch_parts = 100, .requests = 4});
  const auto store = work_of(std::vector<int64_t>(100, 10)), query = work_of({10});
  queue.push(store);
  queue.push(query);
  const auto batch = queue.take();
  // The query comes after half of the batch. Nobody else waits for the other half.
  EXPECT_EQ(places_of(batch)[5], (std::pair<const Work*, size_t>(query.get(), 0)));
  EXPECT_EQ(tokens_of(batch), 100);
  EXPECT_EQ(std::count_if(batch.begin(), batch.end(),
                          [&](const Part& part) { return part.work == store; }),
            9);
}

TEST(WorkQueue, AQueryWaitsForOneBatchBehindAnyNumberOfLongRequests) {
  WorkQueue queue({.batch_tokens = 100, .batch_parts = 100, .requests = 100});
  std::vector<std::shared_ptr<Work>> stores;
  for (int i = 0; i < 3; ++i)
    queue.push(stores.emplace_back(work_of(std::vector<int64_t>(1000, 10))));
  for (int round = 0; round < 20; ++round) {
    queue.take();
    const auto query = work_of({10});
    queue.push(query);
    bool is_taken = false;
    for (int batch = 0; batch < 2 && !is_taken; ++batch) {
      for (const Part& part : queue.take()) is_taken = is_taken || part.work == query;
    }
    EXPECT_TRUE(is_taken) << round;
  }
}

TEST(WorkQueue, LongRequestsTakeTurns) {
  WorkQueue queue({.batch_tokens = 100, .batch_parts = 100, .requests = 100});
  std::map<const Work*, int> counts;
  for (int i = 0; i < 4; ++i) queue.push(work_of(std::vector<int64_t>(200, 10)));
  for (int i = 0; i < 40; ++i) {
    for (const Part& part : queue.take()) ++counts[part.work.get()];
  }
  ASSERT_EQ(counts.size(), 4u);
  for (const auto& [work, count] : counts) EXPECT_EQ(count, 100);
}

TEST(WorkQueue, SmallOnesDoNotStarveALargePart) {
  WorkQueue queue(kHundred);
  queue.push(work_of({60}));
  queue.push(work_of({90}));
  queue.push(work_of({30}));
  EXPECT_THAT(sizes_of(queue.take()), ElementsAre(60, 30));
  queue.push(work_of({20}));
  EXPECT_EQ(sizes_of(queue.take()).front(), 90);
}

TEST(WorkQueue, PartsOfARequestKeepTheirOrder) {
  WorkQueue queue({.batch_tokens = 64, .batch_parts = 16, .requests = 1000});
  std::mt19937 random(3);
  std::map<const Work*, size_t> next;
  std::vector<std::shared_ptr<Work>> works;
  size_t pushed = 0, taken = 0;
  for (int round = 0; round < 500 || taken < pushed; ++round) {
    if (round < 500) {
      std::vector<int64_t> tokens;
      for (auto i = random() % 12; i <= 12; ++i) {
        tokens.push_back(1 + static_cast<int64_t>(random() % 80));
      }
      pushed += tokens.size();
      queue.push(works.emplace_back(work_of(tokens)));
    }
    const auto batch = queue.take();
    ASSERT_FALSE(batch.empty());
    EXPECT_TRUE(tokens_of(batch) <= 64 || batch.size() == 1) << tokens_of(batch);
    EXPECT_LE(batch.size(), 16u);
    for (const Part& part : batch) EXPECT_EQ(part.index, next[part.work.get()]++);
    queue.end(batch, "");
    taken += batch.size();
  }
  EXPECT_EQ(taken, pushed);
  EXPECT_EQ(queue.requests(), 0);
  for (const auto& work : works) EXPECT_TRUE(is_done(*work));
}

TEST(WorkQueue, ARequestEndsWithItsLastPart) {
  WorkQueue queue(kHundred);
  const auto work = work_of({60, 60});
  queue.push(work);
  queue.end(queue.take(), "");
  EXPECT_FALSE(is_done(*work));
  EXPECT_EQ(queue.requests(), 1);
  queue.end(queue.take(), "broken");
  EXPECT_TRUE(is_done(*work));
  EXPECT_EQ(work->failure(), "broken");
  EXPECT_EQ(queue.requests(), 0);
  EXPECT_GE(work->queue_seconds(), 0);
  EXPECT_GE(work->inference_seconds(), 0);
}

TEST(WorkQueue, TheFirstFailureIsKept) {
  WorkQueue queue(kHundred);
  const auto work = work_of({60, 60, 60});
  queue.push(work);
  for (const char* failure : {"first", "", "third"}) queue.end(queue.take(), failure);
  EXPECT_TRUE(is_done(*work));
  EXPECT_EQ(work->failure(), "first");
}

TEST(WorkQueue, MoreThanTheLimitIsFull) {
  WorkQueue queue(kHundred);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(queue.push(work_of({30})), WorkQueue::Entry::kQueued);
  EXPECT_EQ(queue.push(work_of({30})), WorkQueue::Entry::kFull);
  // What is being computed counts, too.
  const auto batch = queue.take();
  EXPECT_EQ(queue.push(work_of({30})), WorkQueue::Entry::kFull);
  queue.end(batch, "");
  EXPECT_EQ(queue.push(work_of({30})), WorkQueue::Entry::kQueued);
}

TEST(WorkQueue, AWorkWithoutPartsEndsAtOnce) {
  WorkQueue queue(kHundred);
  const auto work = work_of({});
  EXPECT_EQ(queue.push(work), WorkQueue::Entry::kQueued);
  EXPECT_TRUE(is_done(*work));
  EXPECT_EQ(queue.requests(), 0);
}

TEST(WorkQueue, PartsOfACancelledRequestAreLeftOut) {
  WorkQueue queue(kHundred);
  const auto begun = work_of({60, 60}), other = work_of({70}), waiting = work_of({80});
  for (const auto& work : {begun, other, waiting}) queue.push(work);
  const auto batch = queue.take();
  EXPECT_EQ(places_of(batch), (Places{{begun.get(), 0}}));
  queue.cancel(begun);
  queue.cancel(waiting);
  queue.cancel(waiting);
  EXPECT_EQ(queue.requests(), 2);
  queue.end(batch, "");
  EXPECT_EQ(queue.requests(), 1);
  EXPECT_EQ(places_of(queue.take()), (Places{{other.get(), 0}}));
  // All of its parts are in batches: it ends with them.
  queue.cancel(other);
  EXPECT_EQ(queue.requests(), 1);
}

TEST(WorkQueue, AClosedOneGivesWhatItHas) {
  WorkQueue queue(kHundred);
  queue.push(work_of({60, 60}));
  queue.close();
  EXPECT_EQ(queue.push(work_of({1})), WorkQueue::Entry::kClosed);
  EXPECT_EQ(queue.take().size(), 1u);
  EXPECT_EQ(queue.take().size(), 1u);
  EXPECT_TRUE(queue.take().empty());
}

TEST(WorkQueue, ThreadsPushCancelAndWait) {
  constexpr int kThreads = 8, kRounds = 200;
  WorkQueue queue({.batch_tokens = 50, .batch_parts = 8, .requests = 6});
  std::thread computes([&] {
    for (;;) {
      const auto batch = queue.take();
      if (batch.empty()) return;
      queue.end(batch, "");
    }
  });
  std::vector<std::thread> clients;
  for (int thread = 0; thread < kThreads; ++thread) {
    clients.emplace_back([&, thread] {
      for (int round = 0; round < kRounds; ++round) {
        const auto work = work_of(std::vector<int64_t>(static_cast<size_t>(1 + round % 5), 20));
        while (queue.push(work) == WorkQueue::Entry::kFull) std::this_thread::yield();
        if ((round + thread) % 3 == 0) {
          queue.cancel(work);
        } else {
          while (!work->wait_for(milliseconds(100))) {
          }
          EXPECT_EQ(work->failure(), "");
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  queue.close();
  computes.join();
  EXPECT_EQ(queue.requests(), 0);
}

}  // namespace
}  // namespace onebit::serve
