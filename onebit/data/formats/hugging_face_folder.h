// A model folder as transformers saves and loads it: config.json, model.safetensors, vocab.txt,
// tokenizer_config.json, special_tokens_map.json, tokenizer.json, added_tokens.json.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/data/formats/tensor_source.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

// The file of the tensors if they are in a single one.
inline constexpr const char* kTensors = "model.safetensors";

struct HuggingFaceFolder {
  EncoderConfigFile config;
  text::VocabularyParts vocabulary;
  // Absent if no file specifies whether text is lower-cased: the user must then.
  std::optional<TokenizerConfigFile> tokenizer;
};

// Error: a file of the folder that a reader of its description opens is a device or a pipe, or far
// larger than such a file.
void require_regular_files(const Path& folder);

// Reads all but the tensors. Errors: the errors of require_regular_files(), a file missing or
// damaged, a vocabulary larger than the config's vocab_size (it may be smaller, as some programs
// pad the embeddings and keep the padding).
HuggingFaceFolder read_hugging_face_folder(const Path& folder);

// read_score_activation() of a model with this head and the files beside its config.json. Absent
// also: another head than a classifier of texts.
std::optional<ScoreActivation> score_activation_beside(const Path& config,
                                                       const std::string& architecture,
                                                       size_t outputs);

// Error: transformers leaves tokens that a text may have out when it counts positions: those with
// the id before the first position, which it takes for padding. A model that onebit wrote beside
// this config.json was trained with all of them counted.
void require_counted_tokens(const EncoderConfigFile& config,
                            const text::VocabularyParts& vocabulary, const Path& path);

// The folder's tensors under the names that they have there, from model.safetensors or
// model.safetensors.index.json. Error: neither exists.
std::shared_ptr<const TensorSource> open_hugging_face_tensors(const Path& folder);

// The files that have changed since model.safetensors was written. Missing ones are followed by
// "(missing)". The `__metadata__` of model.safetensors has a checksum of each file that
// write_hugging_face_folder() writes. Without them (another writer) the list is empty.
std::vector<std::string> changed_files(const Path& folder);
// Error: changed_files() is not empty.
void require_unchanged(const Path& folder);

// Writes all files into the existing, empty `folder`, the tensors, which have onebit's names, under
// the names of the config's family. Errors leave no file of ours half-written.
void write_hugging_face_folder(const Path& folder, const HuggingFaceFolder& content,
                               std::vector<NamedTensor> tensors);

// The same with every tensor of `source`, one at a time. Floating-point ones become `dtype`, or
// stay unchanged if it is absent.
void write_hugging_face_folder(const Path& folder, const HuggingFaceFolder& content,
                               std::shared_ptr<const TensorSource> source,
                               std::optional<DType> dtype);

}  // namespace onebit::formats
