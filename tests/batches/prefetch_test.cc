#include "onebit/data/batches/prefetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>

#include "onebit/data/batches/batch_stream.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"

namespace onebit::batches {
namespace {

using namespace std::chrono_literals;

std::function<Batch()> batches_of(const BatchBounds& bounds) {
  return [bounds] {
    Batch batch;
    batch.reserve(bounds);
    return batch;
  };
}

const std::function<Batch()> kMake = batches_of({.sequences = 1, .rows = 1, .labelled_rows = 1});

void fill(Batch& batch, int64_t ticket) {
  batch.clear();
  batch.samples.push_back(static_cast<uint64_t>(ticket));
}

TEST(Prefetcher, HandsOutAllBatchesInOrder) {
  for (const int threads : {1, 2, 4}) {
    for (const int depth : {1, 3, 8}) {
      Prefetcher<Batch> prefetcher(
          [](int64_t ticket, Batch& batch) {
            if (ticket % 3 == 0) std::this_thread::yield();
            fill(batch, ticket);
            return ticket < 200;
          },
          kMake, {.threads = threads, .depth = depth});
      for (uint64_t expected = 0; expected < 200; ++expected) {
        const Batch* batch = prefetcher.next();
        ASSERT_NE(batch, nullptr);
        ASSERT_EQ(batch->samples, std::vector<uint64_t>{expected});
      }
      EXPECT_EQ(prefetcher.next(), nullptr);
      EXPECT_EQ(prefetcher.next(), nullptr);
    }
  }
}

TEST(Prefetcher, NeverRunsFurtherAheadThanItsDepth) {
  std::atomic<int64_t> built = 0;
  Prefetcher<Batch> prefetcher(
      [&](int64_t ticket, Batch& batch) {
        fill(batch, ticket);
        ++built;
        return true;
      },
      kMake, {.threads = 2, .depth = 3});
  for (int64_t taken = 1; taken <= 20; ++taken) {
    prefetcher.next();
    // The batch that was returned and three more, never beyond.
    while (built < taken + 3) std::this_thread::yield();
    std::this_thread::sleep_for(1ms);
    ASSERT_EQ(built, taken + 3);
  }
}

TEST(Prefetcher, CarriesFailuresToTheConsumerInTheirPlace) {
  for (const int threads : {1, 3}) {
    Prefetcher<Batch> prefetcher(
        [](int64_t ticket, Batch& batch) {
          if (ticket == 5) throw std::runtime_error("ticket 5");
          fill(batch, ticket);
          return true;
        },
        kMake, {.threads = threads, .depth = 4});
    for (uint64_t expected = 0; expected < 5; ++expected) {
      ASSERT_EQ(prefetcher.next()->samples[0], expected);
    }
    for (int again = 0; again < 2; ++again) {
      try {
        prefetcher.next();
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "ticket 5");
      }
    }
  }
}

TEST(Prefetcher, StopsAtAnyTime) {
  for (int taken = 0; taken < 6; ++taken) {
    Prefetcher<Batch> prefetcher(
        [](int64_t ticket, Batch& batch) {
          fill(batch, ticket);
          return true;
        },
        kMake, {.threads = 3, .depth = 2});
    for (int i = 0; i < taken; ++i) prefetcher.next();
  }
}

TEST(Prefetcher, GivesWhatTheStreamBuilds) {
  const TemporaryFolder folder;
  const auto store = corpus::make_store(folder / "store", corpus::sample_documents(20, 31));
  BatchStream stream({{store}}, {.seed = 1, .micro_batch = 4, .accumulation = 2});
  const uint64_t step = stream.samples_per_step();
  Prefetcher<Batch> prefetcher(
      [&](int64_t ticket, Batch& batch) {
        stream.build(static_cast<uint64_t>(ticket / 2) * step, ticket % 2, batch);
        return true;
      },
      batches_of(stream.bounds()), {.threads = 3, .depth = 5});
  BatchStream again({{store}}, {.seed = 1, .micro_batch = 4, .accumulation = 2});
  // Far enough for several epochs.
  const auto tickets = static_cast<int64_t>(3 * again.first_epoch_examples() / 4);
  Batch expected;
  for (int64_t ticket = 0; ticket < tickets; ++ticket) {
    again.build(static_cast<uint64_t>(ticket / 2) * step, ticket % 2, expected);
    const Batch* batch = prefetcher.next();
    ASSERT_NE(batch, nullptr);
    ASSERT_EQ(batch->tokens, expected.tokens);
    ASSERT_EQ(batch->row_keys, expected.row_keys);
    ASSERT_EQ(batch->row_labels, expected.row_labels);
  }
}

TEST(Prefetcher, TakesAnotherBatchInExchange) {
  Prefetcher<std::unique_ptr<Batch>> prefetcher(
      [](int64_t ticket, std::unique_ptr<Batch>& batch) {
        fill(*batch, ticket);
        return true;
      },
      [] { return std::make_unique<Batch>(); }, {.threads = 2, .depth = 2});
  std::vector<std::unique_ptr<Batch>> step(3);
  for (auto& batch : step) batch = std::make_unique<Batch>();
  for (uint64_t ticket = 0; ticket < 30; ticket += step.size()) {
    for (auto& batch : step) std::swap(batch, *prefetcher.next());
    for (size_t i = 0; i < step.size(); ++i) ASSERT_EQ(step[i]->samples[0], ticket + i);
  }
}

TEST(Prefetcher, RefusesNoThreadsAndNoDepth) {
  const auto build = [](int64_t, Batch&) { return false; };
  EXPECT_THAT(message_of([&] { Prefetcher<Batch>(build, kMake, {.threads = 0}); }),
              testing::HasSubstr("at least 1 thread"));
  EXPECT_THAT(message_of([&] { Prefetcher<Batch>(build, kMake, {.threads = 1, .depth = 0}); }),
              testing::HasSubstr("depth of at least 1"));
}

}  // namespace
}  // namespace onebit::batches
