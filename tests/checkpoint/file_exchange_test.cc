#include "onebit/exchange/checkpoint/file_exchange.h"

#include <gtest/gtest.h>

#include "onebit/exchange/comm/thread_communicator.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::checkpoint {
namespace {

constexpr int64_t kChunkBytes = 100;

std::string content(size_t bytes, char first) {
  std::string text(bytes, first);
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(first + i % 23);
  return text;
}

TEST(FileExchange, BringsFilesOfEverySize) {
  const TemporaryFolder root;
  const std::pair<int, int> pairs[] = {{0, 1}, {0, 1}, {0, 2}, {2, 0}, {1, 0}, {2, 1}, {0, 1}};
  const size_t sizes[] = {1000, 0, 99, 100, 101, 1, 350};
  std::vector<FileTransfer> transfers;
  for (size_t i = 0; i < std::size(pairs); ++i) {
    transfers.push_back({.from = pairs[i].first,
                         .to = pairs[i].second,
                         .source = root / fmt::format("from-{}", i),
                         .target = root / fmt::format("to-{}", i)});
    write_file_atomically(transfers.back().source, content(sizes[i], static_cast<char>('a' + i)));
  }
  comm::run_thread_world(3, [&](comm::Communicator& communicator) {
    exchange_files(communicator, transfers, kChunkBytes);
  });
  for (const FileTransfer& transfer : transfers) {
    EXPECT_EQ(read_file(transfer.target), read_file(transfer.source));
  }
}

TEST(FileExchange, AnErrorOfOneRankHoldsNobodyUp) {
  const TemporaryFolder root;
  write_file_atomically(root / "there", content(950, 'a'));
  write_file_atomically(root / "nowhere", "no folder");
  const std::vector<FileTransfer> transfers = {
      {.from = 0, .to = 1, .source = root / "there", .target = root / "nowhere" / "copy"},
      {.from = 0, .to = 2, .source = root / "absent", .target = root / "empty"},
      {.from = 2, .to = 0, .source = root / "there", .target = root / "copy"}};
  std::vector<std::string> messages(3);
  comm::run_thread_world(3, [&](comm::Communicator& communicator) {
    messages[static_cast<size_t>(communicator.rank())] =
        message_of([&] { exchange_files(communicator, transfers, kChunkBytes); });
  });
  EXPECT_NE(messages[0].find("absent: cannot open"), std::string::npos) << messages[0];
  EXPECT_NE(messages[1].find("nowhere: cannot"), std::string::npos) << messages[1];
  EXPECT_EQ(messages[2], "(no error)");
  EXPECT_FALSE(std::filesystem::exists(root / "copy"));  // of a rank that has an error
}

}  // namespace
}  // namespace onebit::checkpoint
