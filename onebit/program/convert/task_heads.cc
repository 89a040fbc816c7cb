#include "onebit/program/convert/task_heads.h"

#include <algorithm>
#include <set>

#include "onebit/apps/classify/classification_model.h"
#include "onebit/apps/squad/question_answering_model.h"
#include "onebit/math/model/head_names.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::convert {
namespace {

// transformers' models with a head of the name "classifier".
constexpr const char* kClassifierModels[] = {model::kClassifierArchitecture,
                                             model::kTaggerArchitecture, "BertForMultipleChoice"};

std::string architecture_of(const std::set<std::string>& parts, const std::string& said) {
  if (parts.contains(model::kAnswerHead)) return model::kAnswerArchitecture;
  if (parts.contains(model::kClassifierHead)) {
    const bool known = std::find(std::begin(kClassifierModels), std::end(kClassifierModels),
                                 said) != std::end(kClassifierModels);
    return known ? said : kClassifierModels[0];
  }
  if (parts.contains(model::kMaskedWordHead)) {
    return parts.contains(model::kNextSentenceHead) ? model::kPretrainingArchitecture
                                                    : model::kMaskedWordArchitecture;
  }
  return parts.contains(model::kNextSentenceHead) ? "BertForNextSentencePrediction"
                                                  : model::kEncoderArchitecture;
}

}  // namespace

TaskHeads find_heads(std::span<const formats::TensorEntry> ours,
                     const std::string& config_architecture) {
  TaskHeads heads;
  std::set<std::string> parts;
  for (const char* part : model::kHeadParts) {
    const bool there = std::any_of(ours.begin(), ours.end(),
                                   [&](const auto& entry) { return entry.name.starts_with(part); });
    if (there) {
      parts.insert(part);
    } else {
      heads.lacking.emplace_back(part);
    }
  }
  for (const auto& entry : ours) {
    // Rows without columns cost nothing in a file, so their number may be any.
    if (entry.name == "classifier.weight" && entry.shape.rank() == 2 && entry.shape[1] > 0) {
      heads.classes = entry.shape[0];
    }
  }
  heads.architecture = architecture_of(parts, config_architecture);
  return heads;
}

std::vector<formats::WantedTensor> all_tensors(const formats::BertConfigFile& config,
                                               const TaskHeads& heads) {
  const model::BertConfig shape = training::model_config(config);
  std::vector<formats::WantedTensor> wanted;
  std::set<std::string> names;
  const auto add = [&](const ParameterTable& table) {
    for (const ParameterEntry& entry : table.entries()) {
      if (names.insert(entry.name).second) wanted.push_back({entry.name, entry.shape});
    }
  };
  ParameterTable pretraining, answers, classification;
  const model::PreTrainingModel pretraining_model(shape, pretraining,
                                                  model::PreTrainingHeads::kBoth);
  const squad::QuestionAnsweringModel answering_model(shape, answers);
  const classify::ClassificationModel classifier(
      shape, {.outputs = std::max<int64_t>(heads.classes, 1)}, classification);
  add(pretraining);
  add(answers);
  add(classification);
  return wanted;
}

}  // namespace onebit::convert
