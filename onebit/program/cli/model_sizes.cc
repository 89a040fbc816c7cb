#include "onebit/program/cli/model_sizes.h"

#include "onebit/ground/base/json.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::cli {

namespace {

model::EncoderConfig config_in(const Path& model_folder) {
  return training::model_config(formats::read_encoder_config(model_folder / "config.json"));
}

Json with_sizes(Json recipe, const model::EncoderConfig& config) {
  if (recipe.contains("model") && !recipe["model"].is_object()) return recipe;
  // A preset gives the family of ModernBERT. No key gives another family.
  constexpr const char* kModern = "modern-base";
  Json& section = recipe["model"];
  if (config.family == model::preset(kModern).family && !section.contains("preset")) {
    section["preset"] = kModern;
  }
  for (const auto& [key, size] : model::kSizeKeys) {
    if (!section.contains(key) && config.*size > 0) section[key] = config.*size;
  }
  return recipe;
}

}  // namespace

Json with_sizes_of_model(Json recipe, const std::string& start) {
  const auto folder = start.empty() ? std::nullopt : training::model_folder_in(start);
  return folder ? with_sizes(std::move(recipe), config_in(*folder)) : recipe;
}

Json with_sizes_of_run(Json recipe, const Path& run, const std::string& tag) {
  const auto config = training::read_model_of_run(run, tag, config_in);
  return config ? with_sizes(std::move(recipe), *config) : recipe;
}

}  // namespace onebit::cli
