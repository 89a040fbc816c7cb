#include "onebit/program/cli/vocabulary_option.h"

#include "onebit/apps/tasks/model_vocabulary.h"

namespace onebit::cli {

void take_vocabulary(const std::string& given, corpus::PrepareOptions& options) {
  const Path path = given;
  if (std::filesystem::is_directory(path) || path.extension() == ".json") {
    options.model_vocabulary = tasks::read_model_vocabulary(path);
  } else {
    options.vocabulary = path;
  }
}

}  // namespace onebit::cli
