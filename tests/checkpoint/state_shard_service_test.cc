#include "onebit/exchange/checkpoint/state_shard.h"

#include <gtest/gtest.h>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/error.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::checkpoint {
namespace {

constexpr size_t kFileBytes = (size_t{9} << 20) + 5;  // more than two pieces

class ShardServiceTest : public testing::Test {
 protected:
  ShardServiceTest() {
    for (int shard = 0; shard < 3; ++shard) write_file_atomically(path(shard), content(shard));
  }
  static std::string content(int shard) {
    std::string text(kFileBytes, ' ');
    for (size_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<char>(i * 31 / 7 + static_cast<size_t>(shard));
    }
    return text;
  }
  Path path(int shard) const { return folder_ / std::to_string(shard); }

  // Rank r has the shard r.
  void on_ranks(int world, const std::function<void(ShardService&, int rank)>& work) const {
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      comm::run_rank(communicator, [&] {
        ShardService service(communicator.duplicate(), [&](int shard) { return path(shard); });
        service.serve_while([&] { work(service, communicator.rank()); });
      });
    });
  }

  TemporaryFolder folder_;
};

TEST_F(ShardServiceTest, GivesAnyRangeToAnyRank) {
  on_ranks(3, [&](ShardService& service, int rank) {
    if (rank == 2) return;  // requests nothing but still serves others
    for (int holder = 0; holder < 3; ++holder) {
      if (holder == rank) continue;
      const std::string expected = content(holder);
      ASSERT_EQ(service.file_bytes(holder, holder), kFileBytes);
      for (const auto& [offset, bytes] : {std::pair<size_t, size_t>{0, kFileBytes},
                                          {7, 1},
                                          {kFileBytes - 3, 3},
                                          {100, 0},
                                          {3, size_t{5} << 20}}) {
        std::string found(bytes, '?');
        service.fetch(holder, holder, offset, std::as_writable_bytes(std::span(found)));
        EXPECT_TRUE(found == expected.substr(offset, bytes)) << offset;
      }
    }
    EXPECT_GT(service.fetched_bytes(), static_cast<int64_t>(2 * kFileBytes));
  });
}

// No rank waits forever, whichever rank fails.
TEST_F(ShardServiceTest, AnErrorEndsAllRanks) {
  const auto read = [](ShardService& service, int rank) {
    std::string found(100, '?');
    for (int turn = 0; turn < 50; ++turn) {
      service.fetch((rank + 1) % 3, (rank + 1) % 3, 0, std::as_writable_bytes(std::span(found)));
    }
  };
  EXPECT_EQ(message_of([&] {
              on_ranks(3, [&](ShardService& service, int rank) {
                if (rank == 1) fail("another model");
                read(service, rank);
              });
            }),
            "another model");
  std::filesystem::remove(path(2));
  const std::string message = message_of([&] { on_ranks(3, read); });
  EXPECT_NE(message.find(path(2).string() + ": cannot open"), std::string::npos) << message;
  std::filesystem::resize_file(path(1), 50);
  const std::string shorter = message_of([&] {
    on_ranks(2, [](ShardService& service, int rank) {
      std::string found(100, '?');
      if (rank == 0) service.fetch(1, 1, 0, std::as_writable_bytes(std::span(found)));
    });
  });
  EXPECT_NE(shorter.find("the file has 50 bytes"), std::string::npos) << shorter;
}

}  // namespace
}  // namespace onebit::checkpoint
