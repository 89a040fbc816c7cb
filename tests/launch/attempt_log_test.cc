#include "onebit/program/launch/attempt_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <thread>

#include "onebit/ground/base/file.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::launch {
namespace {

TEST(TakeAttempt, CountsFromTheLargest) {
  const TemporaryFolder folder;
  const Path logs = folder / "logs";
  EXPECT_EQ(take_attempt(logs).number, 1);
  EXPECT_EQ(take_attempt(logs).folder, logs / "attempt-2");
  std::filesystem::create_directory(logs / "attempt-7");
  std::filesystem::create_directory(logs / "attempt-x");
  EXPECT_EQ(take_attempt(logs).number, 8);
  EXPECT_TRUE(std::filesystem::is_directory(logs / "attempt-8"));
}

// Launches that begin at the same moment must not write into one another's folder.
TEST(TakeAttempt, ANumberIsTakenOnce) {
  const TemporaryFolder folder;
  constexpr int kLaunches = 8, kEach = 20;
  std::vector<std::vector<int>> taken(kLaunches);
  {
    std::vector<std::jthread> launches;
    for (std::vector<int>& own : taken) {
      launches.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) own.push_back(take_attempt(folder / "logs").number);
      });
    }
  }
  std::set<int> all;
  for (const std::vector<int>& own : taken) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), size_t{kLaunches * kEach});
}

TEST(TakeAttempt, AFolderThatCannotBeMadeIsAnError) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "logs", "a file\n");
  EXPECT_THAT(message_of([&] { take_attempt(folder / "logs"); }), testing::HasSubstr("logs"));
}

}  // namespace
}  // namespace onebit::launch
