#include "onebit/training/finetune/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace onebit::finetune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The parts of a file with these items, each as one text.
std::vector<std::string> parts_of(const std::vector<std::string>& items, const PartLimits& limits) {
  std::vector<std::string> parts;
  size_t at = 0;
  for_each_part<std::string>(
      limits,
      [&](std::string& item) {
        if (at == items.size()) return false;
        item = items[at++];
        return true;
      },
      [](const std::string& item) { return item.size(); },
      [&](std::span<const std::string> part) {
        std::string text;
        for (const std::string& item : part) text += item + " ";
        parts.push_back(text);
      });
  return parts;
}

TEST(FileParts, EndAfterSoManyItems) {
  EXPECT_THAT(parts_of({"a", "b", "c", "d", "e"}, {.items = 2, .size = 100}),
              ElementsAre("a b ", "c d ", "e "));
  EXPECT_THAT(parts_of({"a", "b", "c", "d"}, {.items = 2, .size = 100}),
              ElementsAre("a b ", "c d "));
  EXPECT_THAT(parts_of({}, {.items = 2, .size = 100}), IsEmpty());
}

TEST(FileParts, EndWithTheItemThatReachesTheSize) {
  EXPECT_THAT(parts_of({"aa", "bb", "c", "dddddd", "e"}, {.items = 10, .size = 4}),
              ElementsAre("aa bb ", "c dddddd ", "e "));
}

}  // namespace
}  // namespace onebit::finetune
