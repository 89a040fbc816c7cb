#include "onebit/training/finetune/fine_tuning_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/math/model/config.h"
#include "onebit/training/finetune/fine_tuning_config.h"
#include "tests/base/message_of.h"

namespace onebit::finetune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json members(const char* label, int sequences, uint32_t checksum) {
  return {{"labels", Json::array({"O", label})}, {"sequences", sequences}, {"data", checksum}};
}

// A DistilBERT has a key for either head: a classifier's run leaves the other one as it was.
TEST(FineTuningConfig, DropoutBeforeAClassifierIsNotThatOfAnswers) {
  FineTuningConfig config;
  config.classifier_dropout = 0.3;
  const auto made =
      with_recipe(config, {.config = model::preset("bert-tiny"), .answer_dropout = 0.1});
  EXPECT_EQ(made.classifier.dropout, 0.3);
  EXPECT_EQ(made.answer_dropout, 0.1);
}

TEST(DataIdentity, ARunContinuesWithDataOfTheSameForm) {
  const DataIdentity identity(members("B-X", 5, 7), "train.conll", "words or tags");
  EXPECT_EQ(identity.members(), members("B-X", 5, 7));
  EXPECT_THAT(identity.continued(members("B-X", 5, 7), "recipe"), IsEmpty());
  // Other contents are a line in the log.
  EXPECT_THAT(identity.continued(members("B-X", 5, 8), "recipe"),
              ElementsAre(HasSubstr("other words or tags")));
}

TEST(DataIdentity, TheFirstDifferenceIsNamed) {
  const DataIdentity identity(members("B-X", 5, 7), "train.conll", "words or tags");
  const auto error = [&](const Json& saved) {
    return message_of([&] { identity.continued(saved, "recipe.json"); });
  };
  EXPECT_THAT(error(members("B-X", 6, 7)), HasSubstr("recipe.json: the run was started on other"));
  EXPECT_THAT(error(members("B-X", 6, 7)), HasSubstr("the sequences 6, train.conll has 5"));
  EXPECT_THAT(error(members("B-Y", 6, 7)), HasSubstr("the labels [\"O\",\"B-Y\"], train.conll"));
}

// Readers of a client state treat this as a damaged one (training/run_folder.h).
TEST(DataIdentity, AMissingMemberIsNoDifference) {
  const DataIdentity identity(members("B-X", 5, 7), "train.conll", "words or tags");
  EXPECT_THROW(identity.continued(Json::object(), "recipe"), Json::exception);
}

}  // namespace
}  // namespace onebit::finetune
