#include "onebit/data/formats/tensor_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/formats/memory_source.h"

namespace onebit::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<WantedTensor> kWanted = {
    {"bert.a", {2, 3}}, {"bert.b", {3}}, {"qa_outputs.weight", {2, 3}}, {"qa_outputs.bias", {2}}};

TEST(Match, EverythingThere) {
  const std::vector<TensorEntry> found = {{"qa_outputs.bias", DType::kF32, {2}},
                                          {"bert.b", DType::kF16, {3}},
                                          {"bert.a", DType::kF32, {2, 3}},
                                          {"qa_outputs.weight", DType::kF32, {2, 3}}};
  const MatchReport report = match_tensors(found, kWanted, {});
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.lacking.empty());
  EXPECT_TRUE(report.ignored.empty());
}

TEST(Match, RulesCoverHeadsAndNothingElse) {
  const MemorySource source("model.pt", {{"bert.a", DType::kF32, {2, 3}},
                                         {"bert.b", DType::kF32, {3}},
                                         {"cls.predictions.bias", DType::kF32, {9}}});
  const MatchReport report = require_match(source, kWanted, {{"qa_outputs."}, {"cls."}});
  EXPECT_THAT(report.lacking, ElementsAre("qa_outputs.weight", "qa_outputs.bias"));
  EXPECT_THAT(report.ignored, ElementsAre("cls.predictions.bias"));
}

// The head of other labels: of another shape, of the same, or not there.
TEST(Match, AReplacedHeadIsLackingWhateverTheFileHas) {
  const MemorySource source("model.pt", {{"bert.a", DType::kF32, {2, 3}},
                                         {"bert.b", DType::kF32, {3}},
                                         {"qa_outputs.weight", DType::kF32, {7, 3}}});
  const MatchReport report = require_match(
      source, kWanted, {.may_lack = {}, .may_ignore = {}, .replaced = {"qa_outputs."}});
  EXPECT_THAT(report.lacking, ElementsAre("qa_outputs.weight", "qa_outputs.bias"));
  EXPECT_THAT(report.ignored, ElementsAre("qa_outputs.weight"));
}

TEST(Match, EveryFaultIsNamed) {
  const MemorySource source("model.pt", {{"bert.a", DType::kF32, {3, 2}},
                                         {"bert.c", DType::kF32, {3}},
                                         {"qa_outputs.bias", DType::kF32, {3}}});
  const std::string message = message_of([&] { require_match(source, kWanted, {{"qa_"}, {}}); });
  EXPECT_THAT(message, HasSubstr("model.pt"));
  EXPECT_THAT(message, HasSubstr("missing (1):\n    \"bert.b\""));
  EXPECT_THAT(message, HasSubstr("\"bert.a\": [2, 3] wanted, [3, 2] found"));
  EXPECT_THAT(message, HasSubstr("\"qa_outputs.bias\": [2] wanted, [3] found"));
  EXPECT_THAT(message, HasSubstr("unexpected (1):\n    \"bert.c\""));
  EXPECT_THAT(message, Not(HasSubstr("qa_outputs.weight")));
}

TEST(Match, LongListsAreCutWithACount) {
  std::vector<WantedTensor> wanted;
  for (int i = 0; i < 100; ++i) wanted.push_back({fmt::format("t{}", i), {1}});
  EXPECT_THAT(match_tensors({}, wanted, {}).describe(), HasSubstr("... and 80 more"));
}

}  // namespace
}  // namespace onebit::formats
