#include "onebit/tasks/data_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::tasks {
namespace {

using ::testing::HasSubstr;

Json members(const char* label, int sequences, uint32_t checksum) {
  return {{"labels", Json::array({"O", label})}, {"sequences", sequences}, {"data", checksum}};
}

TEST(DataIdentity, ARunContinuesWithDataOfTheSameForm) {
  const DataIdentity identity(members("B-X", 5, 7), "train.conll");
  EXPECT_EQ(identity.members(), members("B-X", 5, 7));
  EXPECT_NO_THROW(identity.require_continues(members("B-X", 5, 7), "recipe"));
  EXPECT_TRUE(identity.has_contents_of(members("B-X", 5, 7)));
  // Other contents are a line in the log.
  EXPECT_NO_THROW(identity.require_continues(members("B-X", 5, 8), "recipe"));
  EXPECT_FALSE(identity.has_contents_of(members("B-X", 5, 8)));
}

TEST(DataIdentity, TheFirstDifferenceIsNamed) {
  const DataIdentity identity(members("B-X", 5, 7), "train.conll");
  const auto error = [&](const Json& saved) {
    return message_of([&] { identity.require_continues(saved, "recipe.json"); });
  };
  EXPECT_THAT(error(members("B-X", 6, 7)), HasSubstr("recipe.json: the run was started on other"));
  EXPECT_THAT(error(members("B-X", 6, 7)), HasSubstr("the sequences 6, train.conll has 5"));
  EXPECT_THAT(error(members("B-Y", 6, 7)), HasSubstr("the labels [\"O\",\"B-Y\"], train.conll"));
}

// Whoever reads a client state takes this for a damaged one (training/run_folder.h).
TEST(DataIdentity, AMissingMemberIsNoDifference) {
  const DataIdentity identity(members("B-X", 5, 7), "train.conll");
  EXPECT_THROW(identity.require_continues(Json::object(), "recipe"), Json::exception);
}

}  // namespace
}  // namespace onebit::tasks
