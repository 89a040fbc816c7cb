#include "onebit/training/finetune/fine_tuned_classifier.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/training/finetune/fine_tuning_config.h"

namespace onebit::finetune {

namespace {

std::vector<std::string> sorted(std::vector<std::string> labels) {
  std::sort(labels.begin(), labels.end());
  return labels;
}

}  // namespace

void check_given_labels(const std::vector<std::string>& labels, size_t least,
                        const std::string& place, const std::string& key) {
  const std::vector<std::string> in_order = sorted(labels);
  const auto twice = std::adjacent_find(in_order.begin(), in_order.end());
  require(twice == in_order.end(), "{}: key `{}` contains \"{}\" twice", place, key,
          twice == in_order.end() ? "" : *twice);
  require(labels.size() >= least,
          "{}: key `{}` contains one label, but a classifier chooses between at least two: add the "
          "others, or leave the key out",
          place, key);
}

LabelChoice choose_labels(std::vector<std::string> labels, bool order_is_given,
                          const training::ClassifierDescription& checkpoint, bool has_classifier) {
  if (!has_classifier) return {.labels = std::move(labels), .decision = ""};
  const bool fits =
      order_is_given ? checkpoint.labels == labels : sorted(checkpoint.labels) == sorted(labels);
  if (!fits) {
    return {.labels = std::move(labels),
            .decision = "the model's classifier has other labels and is replaced"};
  }
  return {.labels = checkpoint.labels,
          .keeps_head = true,
          .decision = "the model's classifier has these labels and is kept and trained further"};
}

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
  // The class's name in the model's family.
  const auto own = [&](const std::string& onebits) {
    return formats::own_class(formats::find_family(description.config.family, "config.json"),
                              onebits);
  };
  require(description.architecture == kind.architecture || !description.has_classifier,
          "{}: key `architectures` names {}, which has no classifier for {}, and the folder has a "
          "classifier (classifier.weight); if that one is for {}, write {} there",
          (folder / "config.json").string(), own(description.architecture), kind.items, kind.items,
          own(kind.architecture));
  require(description.architecture == kind.architecture,
          "{}: is a {}, which has no classifier for {}; `{} --model {}` trains one from it",
          folder.string(), description.architecture, kind.items, kind.command, path.string());
  require_distinct(description.classifier.labels, folder / "config.json");
  return description;
}

namespace {

// What the run that wrote the model trained with. Absent: no run of the task did.
std::optional<int64_t> trained_length(const Path& path, const char* task) {
  const std::optional<Recipe> recipe = recipe_of_run(path, task);
  if (!recipe) return std::nullopt;
  const Json length = recipe->values.value("/data/max_sequence_length"_json_pointer, Json());
  return is_whole(length) ? length.get<int64_t>() : kUsualLength;
}

}  // namespace

int64_t sequence_length(std::optional<int64_t> chosen,
                        const training::ModelDescription& description, const Path& path,
                        const char* task) {
  const int64_t positions = description.config.max_positions;
  require(chosen.value_or(0) <= positions,
          "a sequence length of {} was requested, {} has {} positions", chosen.value_or(0),
          path.string(), positions);
  if (chosen) return *chosen;
  return std::min(
      positions,
      trained_length(path, task).value_or(description.tokenizer_limit.value_or(positions)));
}

std::vector<std::string> labels_of(const training::ClassifierDescription& classifier) {
  if (!classifier.labels.empty()) return classifier.labels;
  return {default_label(0), default_label(1)};
}

}  // namespace onebit::finetune
