#include "onebit/data/text/vocabulary.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/text/small_vocabulary.h"

namespace onebit::text {
namespace {

TEST(VocabularyDifference, CountsFromTheFirst) {
  const auto words = small_vocabulary({"a", "b", "c", "d"});
  const int32_t first = words->find("a").value();
  EXPECT_FALSE(difference(*words, *small_vocabulary({"a", "b", "c", "d"})));
  const auto swapped = difference(*words, *small_vocabulary({"a", "c", "b", "d"}));
  ASSERT_TRUE(swapped.has_value());
  EXPECT_EQ(swapped->first_id, first + 1);
  EXPECT_EQ(swapped->ids, 2);
}

TEST(VocabularyDifference, TheEndOfTheShorterOneIsOne) {
  const auto words = small_vocabulary({"a", "b", "c", "d"}), fewer = small_vocabulary({"a", "b"});
  for (const auto& [one, other] : {std::pair{words, fewer}, std::pair{fewer, words}}) {
    const auto found = difference(*one, *other);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->first_id, words->find("c"));
    EXPECT_EQ(found->ids, 2);
  }
}

}  // namespace
}  // namespace onebit::text
