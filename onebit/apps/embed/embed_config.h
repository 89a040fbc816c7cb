// A recipe for vectors of texts: the keys of all fine-tuning recipes (fine_tuning_config.h), and
// the sections `data` and `embed`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/apps/embed/example_reader.h"
#include "onebit/data/formats/sentence_modules.h"
#include "onebit/training/finetune/fine_tuning_config.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::embed {

// The recipe's key "task".
inline constexpr const char* kEmbedTask = "embed";

struct EmbedConfig : finetune::FineTuningConfig {
  FileLayout layout;
  int64_t max_sequence_length = 128;

  // Absent: as the model's folder specifies for sentence-transformers, else mean and true.
  std::optional<std::vector<formats::SentencePooling>> pooling;
  std::optional<bool> normalize;
  double scale = 20;    // of cosines in the ranking loss
  std::string best_by;  // empty: the first of embed::metric_names()
};

// Lists the keys of a recipe.
EmbedConfig read_embed_recipe(Keys& recipe);

// Error: lists all faults of the recipe. Another task's recipe is one.
EmbedConfig parse_embed_recipe(const Recipe& recipe);

// The facts that `onebit inspect` shows.
training::RecipeFacts inspect_embed_recipe(const Recipe& recipe);

}  // namespace onebit::embed
