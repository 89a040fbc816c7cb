#include "onebit/training/finetune/checkpoint_heads.h"

#include <algorithm>

#include "onebit/ground/base/error.h"
#include "onebit/math/model/head_names.h"

namespace onebit::finetune {

std::vector<std::string> heads_other_than(const std::vector<std::string>& own) {
  std::vector<std::string> others;
  for (const char* head : model::kHeadPrefixes) {
    if (std::find(own.begin(), own.end(), head) == own.end()) others.emplace_back(head);
  }
  return others;
}

std::vector<std::string> heads_of_tokens(const model::EncoderConfig& config, const char* own) {
  if (config.choices.dense_before_labels) return {model::kPooler, own};
  return {own};
}

std::string fill_from_model(ParameterTable& table, const InitialValues& first) {
  table.initialize(first.seed);
  const Path folder = training::find_model_folder(first.model);
  training::load_values(table, folder,
                        {.may_lack = first.heads,
                         .may_ignore = heads_other_than(first.heads),
                         .replaced = first.replaced});
  return fmt::format("{}; missing tensors are initialized with seed {}", folder.string(),
                     first.seed);
}

ConstantWeights load_fine_tuned(Context& context, ParameterTable& table,
                                std::optional<DType> compute, const Path& model,
                                const std::vector<std::string>& heads, training::FileUse file_use) {
  return training::load_for_inference(context, table, compute, training::find_model_folder(model),
                                      {.may_lack = {}, .may_ignore = heads_other_than(heads)},
                                      file_use);
}

}  // namespace onebit::finetune
