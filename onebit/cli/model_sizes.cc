#include "onebit/cli/model_sizes.h"

#include "onebit/base/json.h"
#include "onebit/training/model_folder.h"

namespace onebit::cli {

Json with_sizes_of_model(Json recipe, const std::string& start) {
  const auto folder = start.empty() ? std::nullopt : training::model_folder_in(start);
  const bool has_section = recipe.contains("model");
  if (!folder || (has_section && !recipe["model"].is_object())) return recipe;
  const model::BertConfig config =
      training::model_config(formats::read_bert_config(*folder / "config.json"));
  for (const auto& [key, size] : model::kSizeKeys) {
    if (!recipe["model"].contains(key)) recipe["model"][key] = config.*size;
  }
  return recipe;
}

}  // namespace onebit::cli
