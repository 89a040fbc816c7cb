// The config and the vocabulary of a checkpoint to be converted: found beside it, given, or derived
// from the tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/encoder_shape.h"
#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/tensor_source.h"
#include "onebit/program/convert/convert.h"

namespace onebit::convert {

// The parts of an encoder with heads in a checkpoint, and transformers' class of a model with these
// parts.
struct TaskHeads {
  std::vector<std::string> lacking;  // prefixes ("qa_outputs.") of parts that are absent
  std::string architecture;          // "BertForQuestionAnswering"
  int64_t classes = 0;               // rows of "classifier.", 0 without one
};

// The parts of a list of tensors under our names. A part is present if one of its tensors is.
// `config_architecture` distinguishes models of the same tensors (token classification from
// sequence classification).
TaskHeads find_heads(std::span<const formats::TensorEntry> ours,
                     const std::string& config_architecture);

// Every tensor that a model of this config may have, all heads included.
std::vector<formats::WantedTensor> all_tensors(const formats::EncoderConfigFile& config,
                                               const TaskHeads& heads);

struct ConvertSource {
  std::vector<Path> folders;  // where files of the model may be, nearest first
  std::string place;          // of the tensors
  formats::Naming naming{};
  formats::ModelNames names;
  std::vector<formats::TensorEntry> ours;  // the tensors under onebit's names
  formats::EncoderShape shape;  // of another family than BERT: only its first and last member
};

// The family whose names the tensors have, according to the config given or found in `folders`, or
// BERT without a config. Errors: an unknown model_type, a config of another family that cannot be
// read.
formats::ModelNames names_of_source(const ConvertOptions& options,
                                    const std::vector<Path>& folders);

// Returns config, vocabulary and tokenizer, and appends decisions to `lines`. The config's
// vocab_size is the number of rows to be written. Its architecture is the one that the config
// names.
formats::HuggingFaceFolder describe_model(const ConvertOptions& options,
                                          const ConvertSource& source,
                                          std::vector<std::string>& lines);

}  // namespace onebit::convert
