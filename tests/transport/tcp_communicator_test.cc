// What is TCP's own: ranks that fail, leave or are killed, and messages that nobody expects yet.
#include "onebit/exchange/transport/tcp_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/machine.h"
#include "tests/base/message_of.h"
#include "tests/transport/mpi_environment.h"
#include "tests/transport/tcp_world.h"

namespace onebit::transport {
namespace {

using tcp_tests::run_tcp_world;

constexpr const char* kMessage = "shard 17 of rank 1 is cut short";

TEST(TcpCommunicator, AFailedRankEndsTheOthersWhereverTheyWait) {
  for (const bool computes_first : {false, true}) {
    std::atomic<int> notified = 0;
    const auto work = [&](comm::Communicator& world) {
      const auto pair = world.split(world.rank() / 2);
      world.barrier();
      if (world.rank() == 1) fail("{}", kMessage);
      try {
        if (computes_first) {
          while (true) {
            world.check_peers();
            std::this_thread::yield();
          }
        }
        pair->barrier();  // of ranks 2 and 3, or with rank 1
        world.barrier();
        ADD_FAILURE() << "rank " << world.rank() << " was not notified";
      } catch (const comm::PeerError& error) {
        EXPECT_EQ(error.failed_rank(), 1) << "as the world numbers it";
        EXPECT_NE(std::string(error.what()).find(kMessage), std::string::npos);
        ++notified;
        throw;
      }
    };
    EXPECT_EQ(message_of([&] { run_tcp_world(4, work); }), kMessage);
    EXPECT_EQ(notified, 3);
  }
}

TEST(TcpCommunicator, ARankThatEndsEarlyIsNamed) {
  const auto work = [](comm::Communicator& world) {
    if (world.rank() == 1) return;
    world.barrier();
  };
  EXPECT_NE(message_of([&] { run_tcp_world(3, work); }).find("rank 1 failed: it ended while rank"),
            std::string::npos);
}

// It goes on without the others, who have what it sent before.
TEST(TcpCommunicator, ARankThatLeavesIsNamed) {
  std::atomic<int> received = 0;
  const auto work = [&](comm::Communicator& world) {
    const auto pair = world.duplicate();
    std::vector<double> values(1000, 1);
    world.all_reduce(std::span<double>(values), comm::Reduction::kSum);
    received += static_cast<int>(values[0]);
    if (world.rank() != 1) return pair->barrier();
    world.leave();
    world.leave();
    for (comm::Communicator* one : {&world, pair.get()}) {
      EXPECT_NE(message_of([&] { one->barrier(); }).find("rank 1 has left its group"),
                std::string::npos);
    }
  };
  EXPECT_NE(message_of([&] { run_tcp_world(3, work); }).find("rank 1 failed: it ended while rank"),
            std::string::npos);
  EXPECT_EQ(received, 9);
}

TEST(TcpCommunicator, RanksThatDisagreeAreNamed) {
  const auto about_sizes = [](comm::Communicator& world) {
    std::vector<std::byte> all(world.rank() == 0 ? 6 : 8);
    world.all_gather(std::span(all).first(all.size() / 2), all);
  };
  EXPECT_NE(message_of([&] { run_tcp_world(2, about_sizes); }).find("which expects"),
            std::string::npos);
  const auto about_operations = [](comm::Communicator& world) {
    std::vector<std::byte> bytes(2);
    if (world.rank() == 0) {
      world.broadcast(std::span(bytes).first(1), 0);  // as many bytes as below
    } else {
      world.all_gather(std::span(bytes).first(1), bytes);
    }
    world.barrier();  // nobody has ended before the other one has seen it
  };
  const std::string error = message_of([&] { run_tcp_world(2, about_operations); });
  EXPECT_NE(error.find("disagree on the next"), std::string::npos) << error;
}

TEST(TcpCommunicator, ConnectsManyRanks) {
  raise_open_files(int64_t{70} * 70);  // both ends of every connection are in this process
  run_tcp_world(64, [](comm::Communicator& world) { world.barrier(); });
}

// As of a rank that is ahead: they wait in the receiver's memory up to a limit, then in the
// sender's, and neither keeps messages of another communicator from arriving.
TEST(TcpCommunicator, MessagesBeforeTheyAreExpectedDoNotHoldUpOthers) {
  run_tcp_world(2, [](comm::Communicator& world) {
    constexpr size_t kMessages = 40, kBytes = size_t{1} << 20;
    const auto other = world.duplicate();
    std::vector<std::vector<std::byte>> messages(kMessages, std::vector<std::byte>(kBytes));
    std::vector<comm::Request> requests;
    for (size_t i = 0; i < kMessages; ++i) {
      if (world.rank() == 0) messages[i].assign(kBytes, static_cast<std::byte>(i + 1));
      if (world.rank() == 0) requests.push_back(other->start_broadcast(messages[i], 0));
    }
    for (int i = 0; i < 10; ++i) world.barrier();
    for (size_t i = 0; i < kMessages; ++i) {
      if (world.rank() == 1) requests.push_back(other->start_broadcast(messages[i], 0));
    }
    for (comm::Request& request : requests) request.wait();
    for (size_t i = 0; i < kMessages; ++i) {
      EXPECT_EQ(messages[i], std::vector<std::byte>(kBytes, static_cast<std::byte>(i + 1)));
    }
  });
}

// A rank that unwinds while others still send must not have its memory written (the address
// sanitizer would detect it).
TEST(TcpCommunicator, BuffersAreTakenBackSafely) {
  for (int round = 0; round < 6; ++round) {
    const auto work = [round](comm::Communicator& world) {
      std::vector<std::byte> send(3'000'000), receive(3'000'000);
      const std::vector<int64_t> sizes_bytes(3, 1'000'000);
      comm::Request request = world.start_all_to_all_v({send, sizes_bytes, receive, sizes_bytes});
      if (world.rank() == round % 3) fail("given up");
      request.wait();
      world.barrier();
    };
    EXPECT_EQ(message_of([&] { run_tcp_world(3, work); }), "given up");
  }
}

TEST(TcpCommunicator, AnInterruptedWaitThrows) {
  run_tcp_world(2, [](comm::Communicator& world) {
    const auto other = world.duplicate();
    if (world.rank() == 0) {
      std::thread interrupter([&] { other->interrupt(); });
      EXPECT_NE(message_of([&] { other->barrier(); }).find("interrupted in all_gather"),
                std::string::npos);
      interrupter.join();
    }
    world.barrier();  // others are not disturbed
  });
}

// This program again, as `ranks` processes that run one disabled test. Returns what they print.
std::string run_processes(int ranks, const std::string& test) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = fmt::format(
      "for rank in $(seq 0 {}); do env -u GTEST_OUTPUT -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX "
      "RANK=$rank WORLD_SIZE={} "
      "LOCAL_WORLD_SIZE={} MASTER_ADDR=127.0.0.1 MASTER_PORT={} {} --gtest_also_run_disabled_tests "
      "--gtest_filter={} 2>&1 & done; wait",
      ranks - 1, ranks, ranks, tcp_tests::free_port(), self, test);
  FILE* pipe = popen(command.c_str(), "r");
  require(pipe != nullptr, "cannot start {}", command);
  std::string output;
  std::array<char, 4096> part{};
  while (const size_t size = fread(part.data(), 1, part.size(), pipe)) {
    output.append(part.data(), size);
  }
  pclose(pipe);
  return output;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(TcpCommunicator, AKilledProcessIsNamedByAllOthers) {
  if (mpi_tests::mpi_world() != nullptr) GTEST_SKIP() << "starts processes itself";
  const std::string output = run_processes(4, "TcpProcess.DISABLED_IsKilled");
  EXPECT_EQ(count_of(output, "says: rank 2 failed: its process on"), 3u) << output;
}

TEST(TcpProcess, DISABLED_IsKilled) {
  const std::unique_ptr<World> started = mpi_tests::take_mpi_world();
  comm::Communicator& world = started->communicator();
  const auto other = world.duplicate();
  // Rank 0 waits for all others, and they for it.
  comm::Communicator& awaited = world.rank() == 0 ? *other : world;
  const std::string message = message_of([&] {
    comm::run_rank(awaited, [&] {
      // A killed process takes along what it has sent and nobody has read yet, so a slow rank can
      // notice its end in this barrier.
      world.barrier();
      if (world.rank() == 2) raise(SIGKILL);
      awaited.barrier();
    });
  });
  fmt::print("rank {} says: {}\n", world.rank(), message);
}

}  // namespace
}  // namespace onebit::transport
