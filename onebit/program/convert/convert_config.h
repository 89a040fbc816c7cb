// The config and the vocabulary of a checkpoint to be converted: found beside it, given, or derived
// from the tensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/data/formats/bert_shape.h"
#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/program/convert/convert.h"

namespace onebit::convert {

struct ConvertSource {
  std::vector<Path> folders;  // where files of the model may be, nearest first
  std::string place;          // of the tensors
  formats::Naming naming{};
  formats::BertShape shape;
};

// Returns config, vocabulary and tokenizer; appends decisions to `lines`. The config's vocab_size
// is the number of rows to be written; its architecture is the one that the config names.
formats::HuggingFaceFolder describe_model(const ConvertOptions& options,
                                          const ConvertSource& source,
                                          std::vector<std::string>& lines);

}  // namespace onebit::convert
