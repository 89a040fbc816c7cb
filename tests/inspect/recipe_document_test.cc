#include "onebit/program/inspect/recipe_document.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "onebit/ground/base/file.h"

namespace onebit::inspect {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(RecipeDocument, IsDocsRecipe) {
  EXPECT_TRUE(recipe_document() == read_file(ONEBIT_SOURCE_DIR "/docs/recipe.md"))
      << "docs/recipe.md is stale: onebit recipe keys > docs/recipe.md";
}

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.find(part) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

TEST(RecipeDocument, ListsOnceWhatTasksAndTypesShare) {
  const std::string text = recipe_document();
  for (const char* key :
       {"seed", "train_batch_size", "betas", "doc_stride", "full_recomputation"}) {
    EXPECT_THAT(lines_with(text, fmt::format("| `{}` |", key)), SizeIs(1)) << key;
  }
  EXPECT_THAT(lines_with(text, "## `run`"), ElementsAre("## `run`"));
  EXPECT_THAT(lines_with(text, "| `steps` |"),
              ElementsAre(StartsWith("| `steps` | `pretrain` |"),  // required there
                          StartsWith("| `steps` | `squad`, `classify`, `tag`, `embed` |")));
  EXPECT_THAT(text, HasSubstr("\n| `adam_w_mode` | `Adam`, `AdamW`, `OneBitAdam` |"));
  EXPECT_THAT(text, HasSubstr("\n| `seed` |  |"));
  EXPECT_THAT(text, HasSubstr("\n## `answers`, task `squad`\n"));
  EXPECT_LT(text.find("\n## `tensorboard`\n"), text.find(", task "));
}

TEST(RecipeDocument, OfATaskHasItsKeysOnly) {
  const std::string text = recipe_document("squad");
  for (const char* key : {"seed", "steps", "doc_stride", "n_best_size", "betas"}) {
    EXPECT_THAT(lines_with(text, fmt::format("| `{}` |", key)), SizeIs(1)) << key;
  }
  for (const char* other :
       {"| `whole_word_masking` |", "| `preset` |", "`pretrain` |", ", task "}) {
    EXPECT_THAT(text, Not(HasSubstr(other)));
  }
}

}  // namespace
}  // namespace onebit::inspect
