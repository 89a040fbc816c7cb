// The rules of entities, which tag_scores_test.cc compares with seqeval on many tags.
#include "onebit/apps/tag/entities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace onebit::tag {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tags = std::vector<std::string>;

std::vector<Entity> of(const Tags& tags) {
  return entities_of(tags);
}

TEST(Entities, AreFoundInEveryScheme) {
  const std::vector<Entity> expected = {{"LOC", 0, 1}, {"PER", 3, 3}, {"PER", 4, 5}};
  EXPECT_EQ(of({"B-LOC", "I-LOC", "O", "B-PER", "B-PER", "I-PER"}), expected);
  EXPECT_EQ(of({"I-LOC", "I-LOC", "O", "I-PER", "B-PER", "I-PER"}), expected);
  EXPECT_EQ(of({"B-LOC", "E-LOC", "O", "S-PER", "B-PER", "E-PER"}), expected);
  EXPECT_EQ(of({"I-LOC", "E-LOC", "O", "E-PER", "I-PER", "E-PER"}), expected);
  EXPECT_THAT(of({"O", "O"}), IsEmpty());
  EXPECT_THAT(of({}), IsEmpty());
}

TEST(Entities, IllFormedTagsAreForgiven) {
  EXPECT_THAT(of({"O", "I-LOC"}), ElementsAre(Entity{"LOC", 1, 1}));
  EXPECT_THAT(of({"B-LOC", "I-PER"}), ElementsAre(Entity{"LOC", 0, 0}, Entity{"PER", 1, 1}));
  EXPECT_THAT(of({"I", "I"}), ElementsAre(Entity{"_", 0, 1}));
}

TEST(Entities, StrictOnesAreWellFormed) {
  const auto strict = [](const Tags& tags, Scheme scheme) {
    return strict_entities_of(tags, scheme);
  };
  EXPECT_THAT(strict({"O", "I-LOC"}, Scheme::kIob2), IsEmpty());
  EXPECT_THAT(strict({"O", "I-LOC"}, Scheme::kIob1), ElementsAre(Entity{"LOC", 1, 1}));
  EXPECT_THAT(strict({"B-LOC", "I-PER"}, Scheme::kIob2), ElementsAre(Entity{"LOC", 0, 0}));
  EXPECT_THAT(strict({"B-LOC", "I-LOC"}, Scheme::kIobes), IsEmpty());
  EXPECT_THAT(strict({"B-LOC", "E-LOC", "S-LOC"}, Scheme::kIobes),
              ElementsAre(Entity{"LOC", 0, 1}, Entity{"LOC", 2, 2}));
}

// Written entities can be read again: leniently in every scheme, strictly except in IOB1 and IOE1,
// whose tables lose adjacent entities of two types.
TEST(Entities, AreReadAsTheyWereWritten) {
  std::mt19937 random(1);
  const auto below = [&](size_t bound) { return random() % bound; };
  const Tags types = {"LOC", "PER", "_"};
  for (int round = 0; round < 300; ++round) {
    const size_t words = 1 + below(12);
    std::vector<Entity> entities;
    for (size_t at = below(3); at < words;) {
      const size_t last = std::min(words - 1, at + below(3));
      entities.push_back({types[below(3)], at, last});
      at = last + 1 + below(2);
    }
    for (const Scheme scheme :
         {Scheme::kIob1, Scheme::kIob2, Scheme::kIobes, Scheme::kIoe1, Scheme::kIoe2}) {
      const Tags tags = tags_of(entities, words, scheme);
      ASSERT_EQ(tags.size(), words);
      EXPECT_EQ(of(tags), entities) << name_of(scheme);
      if (scheme != Scheme::kIob1 && scheme != Scheme::kIoe1) {
        EXPECT_EQ(strict_entities_of(tags, scheme), entities) << name_of(scheme);
      }
    }
  }
}

TEST(Entities, TagsOfTheSchemes) {
  const std::vector<Entity> entities = {{"A", 0, 0}, {"A", 1, 3}, {"B", 4, 4}};
  EXPECT_THAT(tags_of(entities, 6, Scheme::kIob1),
              ElementsAre("I-A", "B-A", "I-A", "I-A", "I-B", "O"));
  EXPECT_THAT(tags_of(entities, 6, Scheme::kIob2),
              ElementsAre("B-A", "B-A", "I-A", "I-A", "B-B", "O"));
  EXPECT_THAT(tags_of(entities, 6, Scheme::kIobes),
              ElementsAre("S-A", "B-A", "I-A", "E-A", "S-B", "O"));
  EXPECT_THAT(tags_of(entities, 6, Scheme::kIoe1),
              ElementsAre("E-A", "I-A", "I-A", "I-A", "I-B", "O"));
  EXPECT_THAT(tags_of(entities, 6, Scheme::kIoe2),
              ElementsAre("E-A", "I-A", "I-A", "E-A", "E-B", "O"));
}

}  // namespace
}  // namespace onebit::tag
