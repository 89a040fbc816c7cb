// A rank that fails ends all of them, with its message.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/exchange/transport/nccl_communicator.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/memory.h"
#include "tests/transport/mpi_environment.h"

namespace onebit::transport {
namespace {

constexpr const char* kMessage = "shard 17 of rank 1 is cut short";

enum class Waiting { kInAllReduce, kInBroadcast, kInPolling };

void wait_for_all(comm::Communicator& world, Waiting how) {
  std::vector<double> value{1};
  std::vector<std::byte> bytes(8);
  switch (how) {
    case Waiting::kInAllReduce:
      return world.all_reduce(std::span<double>(value), comm::Reduction::kSum);
    case Waiting::kInBroadcast:
      return world.broadcast(bytes, 1);
    case Waiting::kInPolling:
      for (comm::Request request = world.start_barrier(); !request.test();)
        std::this_thread::yield();
  }
}

class FailingThreadRank : public ::testing::TestWithParam<int> {};

TEST_P(FailingThreadRank, EndsTheOthersWhereverTheyWait) {
  for (const Waiting how : {Waiting::kInAllReduce, Waiting::kInBroadcast, Waiting::kInPolling}) {
    std::atomic<int> notified = 0;
    const auto work = [&](comm::Communicator& world) {
      try {
        world.barrier();  // some may still be inside when rank 1 fails
        if (world.rank() == 1) fail("{}", kMessage);
        wait_for_all(world, how);
        ADD_FAILURE() << "rank " << world.rank() << " was not notified";
      } catch (const comm::PeerError& error) {
        EXPECT_EQ(error.failed_rank(), 1);
        EXPECT_NE(std::string(error.what()).find(kMessage), std::string::npos);
        ++notified;
        throw;
      }
    };
    try {
      comm::run_thread_world(GetParam(), work);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), kMessage);
    }
    EXPECT_EQ(notified, GetParam() - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, FailingThreadRank, ::testing::Values(2, 3, 8));

// Ranks also end where they wait for ranks that have not failed.
TEST(FailingRank, EndsOthersThatWaitInAPart) {
  std::atomic<int> notified = 0;
  const auto work = [&](comm::Communicator& world) {
    try {
      // One part has ranks 0 and 2, the other 1 and 3. A rank may still be inside when another one
      // fails.
      const auto part = world.split(world.rank() % 2);
      if (world.rank() == 3) part->abort(kMessage);
      if (world.rank() == 2) return world.barrier();
      part->barrier();
      ADD_FAILURE() << "rank " << world.rank() << " was not notified";
    } catch (const comm::PeerError& error) {
      EXPECT_EQ(error.failed_rank(), 3) << "as the world numbers it";
      ++notified;
      throw;
    }
  };
  EXPECT_THROW(comm::run_thread_world(4, work), Error);
  EXPECT_EQ(notified, 3);
}

TEST(FailingRank, KeepsTheTypeOfTheException) {
  const auto work = [](comm::Communicator& world) {
    if (world.rank() == 1) throw std::out_of_range("row 9");
    world.barrier();
  };
  EXPECT_THROW(comm::run_thread_world(2, work), std::out_of_range);
}

TEST(FailingRank, ThatReturnsEarlyIsNamed) {
  const auto work = [](comm::Communicator& world) {
    if (world.rank() == 1) return;
    world.barrier();
  };
  try {
    comm::run_thread_world(2, work);
    FAIL() << "no error";
  } catch (const comm::PeerError& error) {
    EXPECT_EQ(error.failed_rank(), 1);
  }
}

// A rank that unwinds while others still copy into its buffers must not free them (the address
// sanitizer would detect it).
TEST(FailingRank, TakesItsBuffersBackSafely) {
  for (int round = 0; round < 20; ++round) {
    const auto work = [round](comm::Communicator& world) {
      std::vector<std::byte> send(300000), receive(300000);
      const std::vector<int64_t> sizes_bytes(3, 100000);
      comm::Request request = world.start_all_to_all_v({send, sizes_bytes, receive, sizes_bytes});
      if (world.rank() == round % 3) fail("given up");
      request.wait();
      world.barrier();
    };
    EXPECT_THROW(comm::run_thread_world(3, work), Error);
  }
}

// A rank waits separately for messages between devices.
TEST(FailingRank, EndsOthersThatWaitForNccl) {
  const int devices = memory::cuda_device_count();
  if (devices < 2 || !nccl_is_built()) GTEST_SKIP() << "no two CUDA devices here, or no NCCL";
  std::atomic<int> notified = 0;
  const auto work = [&](comm::Communicator& world) {
    const Device device{DeviceType::kCuda, world.rank()};
    const auto nccl = make_device_communicator(world.duplicate(), device, DeviceTransport::kNccl);
    Buffer values(device, 64);
    values.fill_zero();
    world.barrier();
    if (world.rank() == 1) fail("{}", kMessage);
    try {
      nccl->broadcast({values.data(), 64}, 1);
      ADD_FAILURE() << "rank " << world.rank() << " was not notified";
    } catch (const comm::PeerError& error) {
      EXPECT_EQ(error.failed_rank(), 1);
      ++notified;
      throw;
    }
  };
  EXPECT_THROW(comm::run_thread_world(devices, work), Error);
  EXPECT_EQ(notified, devices - 1);
}

// A launcher would regard the rank that the signal ends as the first one to fail.
TEST(FailingRank, MpiTakesWritingToAClosedConnectionForAnError) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  ::close(ends[1]);
}

struct Ended {
  int status;
  std::string output;
};

// This program again, as `ranks` processes that run one disabled test.
Ended run_under_mpirun(int ranks, const std::string& test) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = fmt::format(
      "env -u GTEST_OUTPUT -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX {} --allow-run-as-root "
      "--oversubscribe --bind-to none -np {} {} "
      "--gtest_also_run_disabled_tests --gtest_filter={} 2>&1",
      ONEBIT_MPIRUN, ranks, self, test);
  FILE* pipe = popen(command.c_str(), "r");
  require(pipe != nullptr, "cannot start {}", command);
  Ended ended{};
  std::array<char, 4096> part;
  while (const size_t size = fread(part.data(), 1, part.size(), pipe)) {
    ended.output.append(part.data(), size);
  }
  ended.status = pclose(pipe);
  return ended;
}

void expect_ended_with_message(const std::string& test) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  if (mpi_tests::mpi_world() != nullptr) GTEST_SKIP() << "starts mpirun itself";
  const Ended ended = run_under_mpirun(3, test);
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.output.find(fmt::format("rank 1 failed: {}", kMessage)), std::string::npos)
      << ended.output;
  EXPECT_EQ(ended.output.find("outlived"), std::string::npos) << ended.output;
}

TEST(FailingRank, EndsProcessesThatWait) {
  expect_ended_with_message("FailingProcess.DISABLED_WhileOthersWait");
}

TEST(FailingRank, EndsProcessesThatCompute) {
  expect_ended_with_message("FailingProcess.DISABLED_WhileOthersCompute");
}

TEST(FailingRank, EndsProcessesWhenOneIsKilled) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  if (mpi_tests::mpi_world() != nullptr) GTEST_SKIP() << "starts mpirun itself";
  const Ended ended = run_under_mpirun(3, "FailingProcess.DISABLED_ByASignal");
  EXPECT_NE(ended.status, 0);
  EXPECT_EQ(ended.output.find("outlived"), std::string::npos) << ended.output;
}

TEST(FailingProcess, DISABLED_ByASignal) {
  const std::unique_ptr<World> mpi = mpi_tests::take_mpi_world();
  comm::Communicator& world = mpi->communicator();
  world.barrier();
  if (world.rank() == 1) raise(SIGKILL);
  comm::run_rank(world, [&] { world.barrier(); });
  std::puts("outlived");
}

TEST(FailingProcess, DISABLED_WhileOthersWait) {
  const std::unique_ptr<World> mpi = mpi_tests::take_mpi_world();
  comm::Communicator& world = mpi->communicator();
  comm::run_rank(world, [&] {
    world.barrier();
    if (world.rank() == 1) fail("{}", kMessage);
    try {
      world.barrier();
    } catch (const comm::PeerError& error) {
      EXPECT_EQ(error.failed_rank(), 1);
      EXPECT_NE(std::string(error.what()).find(kMessage), std::string::npos);
      throw;
    }
    std::puts("outlived");
  });
}

TEST(FailingProcess, DISABLED_WhileOthersCompute) {
  const std::unique_ptr<World> mpi = mpi_tests::take_mpi_world();
  comm::Communicator& world = mpi->communicator();
  comm::run_rank(world, [&] {
    world.barrier();
    if (world.rank() == 1) fail("{}", kMessage);
    std::this_thread::sleep_for(std::chrono::seconds(600));
    std::puts("outlived");
  });
}

}  // namespace
}  // namespace onebit::transport
