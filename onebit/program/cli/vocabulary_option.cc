#include "onebit/program/cli/vocabulary_option.h"

#include "onebit/training/finetune/model_vocabulary.h"

namespace onebit::cli {

void take_vocabulary(const std::string& given, corpus::PrepareOptions& options) {
  const Path path = given;
  if (std::filesystem::is_directory(path) || path.extension() == ".json") {
    options.model_vocabulary = finetune::read_model_vocabulary(path);
  } else {
    options.vocabulary = path;
  }
}

}  // namespace onebit::cli
