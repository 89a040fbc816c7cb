// A recipe for tagging: the keys of all fine-tuning recipes (fine_tuning_config.h), and the
// sections `data` and `tag`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/apps/tag/sentence_reader.h"
#include "onebit/training/finetune/fine_tuning_config.h"
#include "onebit/training/training/model_folder.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::tag {

// The recipe's key "task".
inline constexpr const char* kTagTask = "tag";

struct TagConfig : finetune::FineTuningConfig {
  FileLayout layout;  // its scheme is the key tag.scheme
  int64_t max_sequence_length = 128;
  std::optional<int64_t> stride;  // absent: half of max_sequence_length

  std::vector<std::string> labels;  // empty: the training file's
  std::string best_by;              // empty: the first of tag::metric_names()
};

// data.stride, or its default.
int64_t stride_of(std::optional<int64_t> stride, int64_t max_sequence_length);

// Lists the keys of a recipe.
TagConfig read_tag_recipe(Keys& recipe);

// Error: lists all faults of the recipe. Another task's recipe is one.
TagConfig parse_tag_recipe(const Recipe& recipe);

// The facts that `onebit inspect` shows.
training::RecipeFacts inspect_tag_recipe(const Recipe& recipe);

}  // namespace onebit::tag
