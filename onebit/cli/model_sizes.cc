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
  const std::pair<const char*, int64_t> sizes[] = {
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"num_hidden_layers", config.layers},
      {"num_attention_heads", config.heads},
      {"intermediate_size", config.intermediate_size},
      {"max_position_embeddings", config.max_positions},
      {"type_vocab_size", config.segments}};
  for (const auto& [key, size] : sizes) {
    if (!recipe["model"].contains(key)) recipe["model"][key] = size;
  }
  return recipe;
}

}  // namespace onebit::cli
