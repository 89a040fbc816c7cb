#include "onebit/program/serve/heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/base/peak_memory.h"

namespace onebit::serve {
namespace {

// "VmRSS" of the kernel: the memory that this process has now.
int64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  const std::string name = "VmRSS:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return 1024 * std::stoll(line.substr(name.size()));
  }
  return 0;
}

// Small blocks, of which some stay: those that lie between them are in no large piece.
TEST(ReturnFreeMemory, GivesBackWhatLiesBetweenOthers) {
  if (!is_usual_heap()) GTEST_SKIP() << "memory is allocated by another library";
  constexpr size_t kBlocks = 200'000, kBlockBytes = 200, kStays = 1000;
  std::vector<std::unique_ptr<char[]>> blocks(kBlocks);
  for (auto& block : blocks) block = std::make_unique<char[]>(kBlockBytes);
  const int64_t full = resident_bytes();
  for (size_t i = 0; i < kBlocks; ++i) {
    if (i % kStays != kStays - 1) blocks[i].reset();
  }
  return_free_memory(1000);
  return_free_memory(1'000'000);
  EXPECT_LT(resident_bytes(), full - static_cast<int64_t>(kBlocks * kBlockBytes / 2));
}

// Exits with 0: blocks are given back when they are freed.
[[noreturn]] void free_large_blocks() {
  return_large_blocks();
  constexpr size_t kBytes = size_t{8} << 20;
  bool as_expected = true;
  for (int round = 0; round < 3; ++round) {
    const int64_t before = resident_bytes();
    std::vector<std::string> blocks;
    for (int i = 0; i < 4; ++i) blocks.emplace_back(kBytes, 'x');
    as_expected &= resident_bytes() >= before + static_cast<int64_t>(3 * kBytes);
    // Something small behind them keeps the heap from shrinking.
    const auto small = std::make_unique<char[]>(100);
    blocks.clear();
    as_expected &= resident_bytes() < before + static_cast<int64_t>(kBytes);
  }
  std::exit(as_expected ? 0 : 1);
}

// A block of this size that was freed once would make the C library keep the next ones. A process
// of its own has a heap without the holes that other tests have left.
TEST(ReturnLargeBlocks, GivesThemBackWhenTheyAreFreed) {
  if (!is_usual_heap()) GTEST_SKIP() << "memory is allocated by another library";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(free_large_blocks(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace onebit::serve
