#include "onebit/exchange/comm/overlapped_exchange.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"

namespace onebit::comm {
namespace {

TEST(ExchangeThread, RunsJobsInOrderWhileTheRankDoesSomethingElse) {
  run_thread_world(3, [](Communicator& world) {
    ExchangeThread thread(world.duplicate(), Device{});
    std::vector<int64_t> seen;
    for (int64_t job = 0; job < 50; ++job) {
      thread.submit([&seen, job](Context&, Communicator& communicator) {
        std::vector<int64_t> value{job};
        communicator.all_reduce(std::span<int64_t>(value), Reduction::kMax);
        seen.push_back(value[0]);
      });
      if (job % 10 == 0) world.barrier();
    }
    thread.wait();
    ASSERT_EQ(seen.size(), 50u);
    for (int64_t job = 0; job < 50; ++job) EXPECT_EQ(seen[static_cast<size_t>(job)], job);
    thread.submit([&seen](Context&, Communicator&) { seen.clear(); });
    thread.wait();
    EXPECT_TRUE(seen.empty());
  });
}

// The failing job's rank is busy elsewhere. The others must not wait for it to notice.
TEST(ExchangeThread, AFailingJobEndsAllRanksAtOnce) {
  const auto work = [](Communicator& world) {
    ExchangeThread thread(world.duplicate(), Device{});
    thread.submit([](Context&, Communicator& communicator) {
      if (communicator.rank() == 1) fail("bucket 3 is torn");
      communicator.barrier();
    });
    // Rank 1 does not check its thread: it waits for the others, which wait for their threads.
    if (world.rank() != 1) thread.wait();
    world.barrier();
    thread.wait();
  };
  try {
    run_thread_world(3, work);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("bucket 3 is torn"), std::string::npos)
        << error.what();
  }
}

TEST(ExchangeThread, AnErrorBesideItReleasesAJobThatWaits) {
  const auto work = [](Communicator& world) {
    ExchangeThread thread(world.duplicate(), Device{});
    thread.submit([](Context&, Communicator& communicator) {
      if (communicator.rank() != 0) communicator.barrier();  // waits for rank 0 in vain
    });
    if (world.rank() == 2) fail("the disk of rank 2 is full");
    try {
      thread.wait();
      world.barrier();
    } catch (const Error& error) {  // the peers get this error, not its consequences
      EXPECT_NE(std::string(error.what()).find("the disk of rank 2 is full"), std::string::npos)
          << error.what();
      throw;
    }
  };
  try {
    run_thread_world(3, work);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the disk of rank 2 is full");
  }
}

TEST(ExchangeThread, StopDropsWhatHasNotBegun) {
  run_thread_world(2, [](Communicator& world) {
    ExchangeThread thread(world.duplicate(), Device{});
    if (world.rank() == 0) {
      std::promise<void> begun;
      bool second_ran = false;
      thread.submit([&begun](Context&, Communicator& communicator) {
        begun.set_value();
        communicator.barrier();  // waits for rank 1 in vain
      });
      thread.submit([&second_ran](Context&, Communicator&) { second_ran = true; });
      begun.get_future().wait();
      thread.stop();
      EXPECT_FALSE(second_ran);
    }
    world.barrier();
  });
}

}  // namespace
}  // namespace onebit::comm
