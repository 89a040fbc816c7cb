#include "onebit/training/finetune/fine_tuned_classifier.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/error.h"

namespace onebit::finetune {
namespace {

// Two outputs of one name cannot be told apart in predictions or in a file of labels.
void require_distinct(const std::vector<std::string>& labels, const Path& config) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < labels.size(); ++id) {
    const auto [first, is_new] = ids.emplace(labels[id], id);
    require(is_new,
            "{}: key `id2label` gives the name \"{}\" to {} and to {}: write distinct names",
            config.string(), labels[id], first->second, id);
  }
}

}  // namespace

training::ModelDescription describe_classifier(const Path& path, const ClassifierKind& kind) {
  const Path folder = training::find_model_folder(path);
  training::ModelDescription description = training::read_model_description(folder);
  require(description.architecture == kind.architecture,
          "{}: is a {}, which has no classifier for {}; `{} --model {}` trains one from it",
          folder.string(), description.architecture, kind.items, kind.command, path.string());
  require_distinct(description.classifier.labels, folder / "config.json");
  return description;
}

int64_t sequence_length(std::optional<int64_t> chosen, int64_t usual,
                        const training::ModelDescription& description, const Path& path) {
  const int64_t positions = description.config.max_positions;
  if (!chosen) return std::min(usual, positions);
  require(*chosen <= positions, "a sequence length of {} was requested, {} has {} positions",
          *chosen, path.string(), positions);
  return *chosen;
}

std::vector<std::string> labels_of(const training::ClassifierDescription& classifier) {
  if (!classifier.labels.empty()) return classifier.labels;
  return {default_label(0), default_label(1)};
}

}  // namespace onebit::finetune
