#include "onebit/program/inspect/recipe_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/file.h"

namespace onebit::inspect {
namespace {

using ::testing::HasSubstr;

TEST(RecipeDocument, IsDocsRecipe) {
  EXPECT_EQ(recipe_document(), read_file(ONEBIT_SOURCE_DIR "/docs/recipe.md"))
      << "docs/recipe.md is stale: onebit recipe keys > docs/recipe.md";
}

TEST(RecipeDocument, ListsOnceWhatTasksShare) {
  const std::string text = recipe_document();
  EXPECT_THAT(text, HasSubstr("\n## `run`, task `pretrain`\n"));  // steps are required there
  EXPECT_THAT(text, HasSubstr("\n## `fp16`\n"));
  EXPECT_THAT(text, HasSubstr("\n## `answers`, task `squad`\n"));
  EXPECT_THAT(text, HasSubstr("\n## `optimizer.params` of `Adam`, `AdamW`\n"));
  EXPECT_EQ(text.find("`fp16`, task"), std::string::npos);
}

}  // namespace
}  // namespace onebit::inspect
