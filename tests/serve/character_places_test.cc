#include "onebit/program/serve/character_places.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace onebit::serve {
namespace {

TEST(CharacterPlaces, CountsCharacters) {
  EXPECT_EQ(CharacterPlaces("").at(0), 0);
  const CharacterPlaces places("aé€\xF0\x9F\x98\x80z");
  const int64_t wanted[] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5};
  for (size_t byte = 0; byte < std::size(wanted); ++byte) {
    EXPECT_EQ(places.at(byte), wanted[byte]) << byte;
  }
}

// In any order, whatever lies at the borders of what it remembers.
TEST(CharacterPlaces, KnowsEveryByteOfLongTexts) {
  std::mt19937 random(1);
  const std::string characters[] = {"a", "é", "€", "\xF0\x9F\x98\x80"};
  for (int round = 0; round < 50; ++round) {
    std::string text;
    std::vector<int64_t> wanted;
    const int64_t count = random() % 300;
    for (int64_t i = 0; i < count; ++i) {
      const std::string& one = characters[random() % (round < 10 ? 1 : 4)];
      text += one;
      wanted.insert(wanted.end(), one.size(), i);
    }
    wanted.push_back(count);
    const CharacterPlaces places(text);
    for (size_t byte = wanted.size(); byte-- > 0;) {
      EXPECT_EQ(places.at(byte), wanted[byte]) << byte << " of " << text.size();
    }
  }
}

}  // namespace
}  // namespace onebit::serve
