#include "onebit/data/text/normal_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/philox.h"

namespace onebit::text {
namespace {

// Marks that uncased text keeps, with their combining classes, and letters, which end a run.
struct Known {
  char32_t code_point;
  int order;
};
constexpr std::array<Known, 7> kKnown = {{{U'a', 0},
                                          {U'\u05D0', 0},
                                          {U'\u302E', 224},
                                          {U'\u302F', 224},
                                          {U'\u0BCD', 9},
                                          {U'\U0001D16D', 226},
                                          {U'\U0001D165', 216}}};

std::u32string ordered(std::string_view raw) {
  std::vector<AlignedCharacter> result;
  decompose_in_order(raw, Characters::get(Casing::kUncased), result);
  std::u32string text;
  for (const AlignedCharacter& c : result) text += c.code_point;
  return text;
}

// The rule of Unicode Standard Annex 15, step by step: neighbours in the wrong order are swapped.
std::u32string swapped(std::u32string text) {
  const auto order = [](char32_t c) {
    return std::find_if(kKnown.begin(), kKnown.end(),
                        [c](const Known& k) { return k.code_point == c; })
        ->order;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 1; i < text.size(); ++i) {
      if (order(text[i]) == 0 || order(text[i - 1]) <= order(text[i])) continue;
      std::swap(text[i - 1], text[i]);
      changed = true;
    }
  }
  return text;
}

TEST(DecomposeInOrder, OrdersAsNeighbourSwapsDo) {
  RandomSequence random(1, 2, 3);
  for (int round = 0; round < 500; ++round) {
    std::string raw;
    std::u32string text;
    const uint32_t size = random.below(30);
    for (uint32_t i = 0; i < size; ++i) {
      const char32_t c = kKnown[random.below(kKnown.size())].code_point;
      text += c;
      append_utf8(c, raw);
    }
    // Marks that uncased text drops vanish from both.
    const std::u32string kept = ordered(raw);
    std::u32string wanted = swapped(text);
    std::erase_if(wanted, [&](char32_t c) {
      std::string alone;
      append_utf8(c, alone);
      return ordered(alone).empty();
    });
    ASSERT_EQ(kept, wanted) << raw;
  }
}

// A quadratic sort takes hours for it.
TEST(DecomposeInOrder, EndsWithOneWordOfMillionsOfMarks) {
  constexpr size_t kMarks = 600000;
  std::string raw = "a";
  for (size_t i = 0; i < kMarks; ++i) {
    append_utf8(U'\u302E', raw);      // class 224
    append_utf8(U'\U0001D165', raw);  // class 216
  }
  EXPECT_TRUE(ordered(raw) ==
              U"a" + std::u32string(kMarks, U'\U0001D165') + std::u32string(kMarks, U'\u302E'));
}

}  // namespace
}  // namespace onebit::text
