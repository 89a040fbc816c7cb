#include "onebit/tasks/fine_tuned_classifier.h"

#include "onebit/base/error.h"

namespace onebit::tasks {

training::ModelDescription describe_classifier(const Path& path, const ClassifierKind& kind,
                                               int64_t max_sequence_length) {
  const Path folder = training::find_model_folder(path);
  training::ModelDescription description = training::read_model_description(folder);
  require(description.architecture == kind.architecture,
          "{}: is a {}, which has no classifier for {}; `{} --model {}` trains one from it",
          folder.string(), description.architecture, kind.items, kind.command, path.string());
  require(max_sequence_length <= description.config.max_positions,
          "a sequence length of {} was requested, {} has {} positions", max_sequence_length,
          folder.string(), description.config.max_positions);
  return description;
}

std::vector<std::string> labels_of(const training::ClassifierDescription& classifier) {
  if (!classifier.labels.empty()) return classifier.labels;
  return {"LABEL_0", "LABEL_1"};
}

}  // namespace onebit::tasks
