#include "onebit/data/corpus/ordered_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>

namespace onebit::corpus {
namespace {

using namespace std::chrono_literals;

// Runs 0 .. count - 1 through work(i) and returns what was written.
template <typename Work>
std::vector<int> run(int threads, int count, const Work& work) {
  int next = 0;
  std::vector<int> written;
  OrderedPipeline<int, int>(threads).run(
      [&](int& item) {
        item = next++;
        return item < count;
      },
      [&](int, int& item) { return work(item); }, [&](int& item) { written.push_back(item); });
  return written;
}

std::string failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(OrderedPipeline, KeepsTheOrder) {
  for (const int threads : {1, 2, 5}) {
    for (const int count : {0, 1, 7, 500}) {
      const std::vector<int> written = run(threads, count, [](int item) {
        if (item % 11 == 0) std::this_thread::sleep_for(200us);
        return 3 * item;
      });
      ASSERT_EQ(written.size(), static_cast<size_t>(count));
      for (int i = 0; i < count; ++i) ASSERT_EQ(written[static_cast<size_t>(i)], 3 * i);
    }
  }
}

TEST(OrderedPipeline, HoldsABoundedNumberOfItems) {
  std::atomic<int> read = 0;
  int written = 0, most = 0;
  OrderedPipeline<int, int>(3).run(
      [&](int& item) {
        item = read++;
        return item < 300;
      },
      [&](int, int& item) { return item; },
      [&](int& item) {
        if (item == 10) std::this_thread::sleep_for(20ms);
        most = std::max(most, read - written);
        ++written;
      });
  EXPECT_EQ(written, 300);
  EXPECT_LE(most, 4 * 3 + 1);
}

TEST(OrderedPipeline, RethrowsTheEarliestFailure) {
  for (const int threads : {1, 4}) {
    std::vector<int> written;
    int next = 0;
    const std::string message = failure_of([&] {
      OrderedPipeline<int, int>(threads).run(
          [&](int& item) {
            item = next++;
            return item < 100;
          },
          [&](int, int& item) {
            if (item == 20) std::this_thread::sleep_for(5ms);
            if (item >= 20) throw std::runtime_error("item " + std::to_string(item));
            return item;
          },
          [&](int& item) { written.push_back(item); });
    });
    EXPECT_EQ(message, "item 20");
    EXPECT_EQ(written.size(), 20u);
  }
}

TEST(OrderedPipeline, RethrowsWhatReadingAndWritingThrow) {
  for (const int threads : {1, 4}) {
    int next = 0, written = 0;
    EXPECT_EQ(failure_of([&] {
                OrderedPipeline<int, int>(threads).run(
                    [&](int&) -> bool {
                      if (next == 30) throw std::runtime_error("read");
                      ++next;
                      return true;
                    },
                    [](int, int& item) { return item; }, [&](int&) { ++written; });
              }),
              "read");
    EXPECT_EQ(written, 30);
    EXPECT_EQ(failure_of([&] {
                OrderedPipeline<int, int>(threads).run(
                    [](int&) { return true; }, [](int, int& item) { return item; },
                    [](int&) { throw std::runtime_error("write"); });
              }),
              "write");
  }
}

}  // namespace
}  // namespace onebit::corpus
