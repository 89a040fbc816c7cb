#include "onebit/ground/base/parallel_for.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace onebit {
namespace {

using Parts = std::vector<std::pair<int64_t, int64_t>>;

Parts parts_of(int threads, int64_t count, int64_t grain) {
  std::mutex mutex;
  Parts parts;
  parallel_for(threads, count, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    parts.emplace_back(begin, end);
  });
  std::sort(parts.begin(), parts.end());
  return parts;
}

TEST(ParallelFor, PartsCoverTheRangeOnceInOrder) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const int64_t count : {1, 2, 7, 64, 1000}) {
      for (const int64_t grain : {0, 1, 5, 100}) {
        int64_t next = 0;
        for (const auto& [begin, end] : parts_of(threads, count, grain)) {
          EXPECT_EQ(begin, next);
          EXPECT_LT(begin, end);
          next = end;
        }
        EXPECT_EQ(next, count);
      }
    }
  }
}

TEST(ParallelFor, GrainBoundsTheNumberOfParts) {
  EXPECT_EQ(parts_of(8, 100, 100).size(), 1u);
  EXPECT_EQ(parts_of(8, 199, 100).size(), 1u);
  EXPECT_EQ(parts_of(8, 200, 100).size(), 2u);
  EXPECT_EQ(parts_of(4, 1000000, 1).size(), 4u);
  for (const auto& [begin, end] : parts_of(8, 777, 100)) EXPECT_GE(end - begin, 100);
}

TEST(ParallelFor, TheSamePartsEveryTime) {
  const Parts first = parts_of(3, 1001, 10);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(parts_of(3, 1001, 10), first);
}

// A worker of a data loader is a fork of a process that has computed on several threads.
TEST(ParallelFor, WorksInAForkedChild) {
  parts_of(4, 1000, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // ends a child that waits for threads which the fork did not copy
    std::atomic<int64_t> sum{0};
    parallel_for(4, 1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    ::_exit(sum == 1000 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

int64_t sum_of_numbers(int threads, int64_t count) {
  std::vector<int64_t> sums(8);
  std::atomic<size_t> parts{0};
  parallel_for(threads, count, 1, [&](int64_t begin, int64_t end) {
    int64_t& sum = sums[parts++];
    for (int64_t i = begin; i < end; ++i) sum += i;
  });
  return std::accumulate(sums.begin(), sums.end(), int64_t{0});
}

TEST(ParallelFor, LoopsFollowEachOtherAtOnceAndAfterASleep) {
  for (int loop = 0; loop < 300; ++loop) {
    ASSERT_EQ(sum_of_numbers(1 + loop % 4, 100), 4950);
    if (loop % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(ParallelFor, ThreadsRunLoopsOfTheirOwn) {
  std::vector<int64_t> sums(3);
  {
    std::vector<std::jthread> callers;
    for (int64_t& sum : sums) {
      callers.emplace_back([&sum] {
        for (int loop = 0; loop < 50; ++loop) sum += sum_of_numbers(3, 100);
      });
    }
  }
  for (const int64_t sum : sums) EXPECT_EQ(sum, 50 * 4950);
}

TEST(ParallelFor, ALoopInsideOfAPart) {
  std::atomic<int64_t> sum{0};
  parallel_for(3, 3, 1, [&](int64_t, int64_t) { sum += sum_of_numbers(4, 100); });
  EXPECT_EQ(sum, 3 * 4950);
}

TEST(ParallelFor, NothingToDo) {
  EXPECT_TRUE(parts_of(4, 0, 1).empty());
  EXPECT_TRUE(parts_of(4, -5, 1).empty());
}

TEST(ParallelFor, AnExceptionOfABodyArrivesAfterAllHaveEnded) {
  for (const int threads : {1, 4}) {
    std::atomic<int64_t> done{0};
    const auto body = [&](int64_t begin, int64_t end) {
      done += end - begin;
      if (begin == 0) throw std::runtime_error("part of the first item");
    };
    try {
      parallel_for(threads, 100, 1, body);
      FAIL() << "the exception was lost";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "part of the first item");
    }
    EXPECT_EQ(done, 100);
  }
}

TEST(ParallelFor, PlainWritesAreSeenByTheCaller) {
  std::vector<int64_t> squares(10000);
  parallel_for(4, 10000, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) squares[static_cast<size_t>(i)] = i * i;
  });
  for (int64_t i = 0; i < 10000; ++i) ASSERT_EQ(squares[static_cast<size_t>(i)], i * i);
}

TEST(ParallelFor, RanksAsThreadsLoopAtTheSameTime) {
  std::vector<int64_t> sums(4);
  std::vector<std::thread> ranks;
  for (int64_t& total : sums) {
    ranks.emplace_back([&total] {
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::atomic<int64_t> sum{0};
        parallel_for(2, 100, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) sum += i;
        });
        total += sum;
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  for (const int64_t total : sums) EXPECT_EQ(total, 20 * 4950);
}

TEST(AvailableThreads, IsAtLeastOne) {
  EXPECT_GE(available_threads(), 1);
  EXPECT_LE(available_threads(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace onebit
