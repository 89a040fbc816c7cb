#include "onebit/program/inspect/recipe_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::inspect {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecipeCheckTest : public testing::Test {
 protected:
  RecipeCheck check(const std::string& text) const {
    write_file_atomically(folder_ / "r.json", text);
    return check_recipe(folder_ / "r.json");
  }
  std::string key(const std::string& path) const {
    return (folder_ / "r.json").string() + ": key `" + path + "` ";
  }

  TemporaryFolder folder_;
};

TEST_F(RecipeCheckTest, ShowsWhatARecipeChanges) {
  const RecipeCheck found = check(R"({"train_batch_size": 64, "steps_per_print": 10,
      "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "eps": 1e-8}},
      "scheduler": {"type": "WarmupDecayLR"}, "run": {"steps": 20}})");
  EXPECT_THAT(found.errors, IsEmpty());
  EXPECT_THAT(found.summary, HasSubstr("a recipe for `onebit pretrain`"));
  EXPECT_THAT(found.summary, HasSubstr("\noptimizer.params.lr  0.01"));
  EXPECT_THAT(found.summary, HasSubstr("0.001\n"));
  EXPECT_THAT(found.summary, HasSubstr("note: steps_per_print: no effect"));
  EXPECT_THAT(found.summary, HasSubstr("warning: "));  // the warm-up is longer than the run
  EXPECT_EQ(found.summary.find("params.eps"), std::string::npos) << found.summary;
}

TEST_F(RecipeCheckTest, WarnsOfAFreezeThatNeverComes) {
  const auto summary_with = [&](const char* type, const char* params) {
    return check(fmt::format(R"({{"train_batch_size": 64, "run": {{"steps": 40}},
                                  "optimizer": {{"type": "{}", "params": {}}}}})",
                             type, params))
        .summary;
  };
  EXPECT_THAT(summary_with("OneBitAdam", R"({"freeze_step": 40})"),
              HasSubstr("warning: optimizer.params.freeze_step = 40 is not before the end"));
  EXPECT_THAT(summary_with("OneBitLamb", R"({"freeze_step": "auto"})"),
              HasSubstr("warning: optimizer.params.freeze_step \"auto\" cannot freeze before"));
  EXPECT_THAT(summary_with("ZeroOneAdam", R"({"var_update_scaler": 40})"),
              HasSubstr("warning: optimizer.params.var_update_scaler = 40 and var_freeze_step"));
  EXPECT_EQ(summary_with("OneBitAdam", R"({"freeze_step": 39})").find("warning: "),
            std::string::npos);
}

TEST_F(RecipeCheckTest, NamesEverythingThatIsWrong) {
  const RecipeCheck found = check(R"({"task": "squad", "train_batch_size": 64,
      "optimizer": {"type": "Adamm"}, "run": {"steps": 0}, "data": {"doc_strid": 3},
      "answers": {"text": "spans"}})");
  EXPECT_EQ(found.summary, "");
  const auto names_an_optimizer =
      AllOf(HasSubstr(key("optimizer.type") + "is \"Adamm\"; it must be one of Adam, AdamW, "),
            HasSubstr("(did you mean \"Adam\"?)"));
  EXPECT_THAT(
      found.errors,
      ElementsAre(names_an_optimizer,
                  key("run.steps") + "is 0; it must be a whole number of at least 1",
                  key("answers.text") + "is \"spans\"; it must be one of offsets, projection",
                  key("data.doc_strid") + "is not known; did you mean \"doc_stride\"?"));
}

TEST_F(RecipeCheckTest, BatchSizesMustDivide) {
  const RecipeCheck found = check(R"({"train_batch_size": 9, "gradient_accumulation_steps": 2,
      "optimizer": {"type": "AdamW"}, "run": {"steps": 20}})");
  ASSERT_EQ(found.errors.size(), 1u);
  EXPECT_THAT(found.errors[0], HasSubstr("the batch does not divide evenly"));
}

TEST_F(RecipeCheckTest, WhatIsNoRecipeIsAnError) {
  EXPECT_THAT(message_of([&] { check("[]"); }), HasSubstr("one JSON object"));
  EXPECT_THAT(message_of([&] { check(R"({"task": "sqad"})"); }), HasSubstr("\"squad\""));
}

}  // namespace
}  // namespace onebit::inspect
