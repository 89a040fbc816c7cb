#include "onebit/training/finetune/fine_tuned_classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::finetune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ClassifierLabels, ACheckpointOfTheSameLabelsKeepsItsOrder) {
  const LabelChoice choice = choose_labels({"a", "b"}, false, {.labels = {"b", "a"}}, true);
  EXPECT_TRUE(choice.keeps_head);
  EXPECT_THAT(choice.labels, ElementsAre("b", "a"));
  EXPECT_THAT(choice.decision, HasSubstr("is kept and trained further"));
}

TEST(ClassifierLabels, ARequestedOrderIsKept) {
  const LabelChoice choice = choose_labels({"a", "b"}, true, {.labels = {"b", "a"}}, true);
  EXPECT_FALSE(choice.keeps_head);
  EXPECT_THAT(choice.labels, ElementsAre("a", "b"));
  EXPECT_THAT(choice.decision, HasSubstr("is replaced"));
  EXPECT_TRUE(choose_labels({"a", "b"}, true, {.labels = {"a", "b"}}, true).keeps_head);
}

TEST(ClassifierLabels, WithoutAClassifierThereIsNothingToDecide) {
  const LabelChoice choice = choose_labels({"a", "b"}, false, {.labels = {"a", "b"}}, false);
  EXPECT_FALSE(choice.keeps_head);
  EXPECT_EQ(choice.decision, "");
}

TEST(ClassifierLabels, GivenOnesAreChecked) {
  EXPECT_NO_THROW(check_given_labels({"a", "b"}, 2, "recipe", "tag.labels"));
  EXPECT_THAT(message_of([] {
                check_given_labels({"b", "a", "b"}, 2, "recipe", "tag.labels");
              }),
              HasSubstr("recipe: key `tag.labels` contains \"b\" twice"));
  EXPECT_THAT(message_of([] { check_given_labels({"a"}, 2, "recipe", "tag.labels"); }),
              HasSubstr("chooses between at least two"));
}

}  // namespace
}  // namespace onebit::finetune
