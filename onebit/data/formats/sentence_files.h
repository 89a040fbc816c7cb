// The files that tell sentence-transformers how to compute vectors from a BERT's hidden states:
// modules.json, 1_Pooling/config.json, 2_Dense, 2_Normalize, sentence_bert_config.json,
// config_sentence_transformers.json. They are in a model folder beside transformers' own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/data/formats/sentence_modules.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

struct SentenceFiles {
  // Their vectors are put after one another.
  std::vector<SentencePooling> pooling = {SentencePooling::kMean};
  std::vector<DenseModule> dense = {};  // layers after the pooling, in their order
  bool normalize = true;                // vectors are scaled to length 1
  // Tokens, special ones included, or 0 for as many as the model has positions.
  int64_t max_sequence_length = 0;
  // Texts to put before a text, by name, and the name of the one that is put before every text.
  std::vector<std::pair<std::string, std::string>> prompts = {};
  std::string default_prompt = {};
  bool pools_prompt = true;           // "include_prompt"
  std::string similarity = "cosine";  // "similarity_fn_name": how programs compare vectors
  int64_t dimensions = 0;             // "truncate_dim": the first numbers of a vector. 0: all

  bool operator==(const SentenceFiles&) const = default;
};

// The numbers of a vector, before `dimensions`, if a token's vector has `hidden` numbers. Error:
// the first of the dense layers reads vectors of another length.
int64_t vector_length(const SentenceFiles& files, int64_t hidden);

// The folders of the modules, in their order, inside the model's.
std::vector<Path> module_folders(const SentenceFiles& files);

// The folder of the encoder that modules.json in `folder` names. Version 1 of sentence-transformers
// wrote it into a folder of its own. Absent if there is no modules.json, or no encoder in it.
std::optional<Path> sentence_encoder_in(const Path& folder);

// Whether config.json in `folder` is no model's: version 1 of sentence-transformers wrote its own
// version there, above the encoder's folder.
bool has_config_of_sentences(const Path& folder);

// The files of an encoder's folder, or of the folder above it if the encoder has a folder of its
// own. Absent if there is no modules.json. Errors: a file is missing or damaged, a module other
// than Transformer, Pooling, Dense and Normalize, in another order, or outside the folder, dense
// layers that do not fit each other, a default prompt that is not among the prompts, text that is
// lower-cased before a cased tokenizer gets it, an unknown member.
std::optional<SentenceFiles> read_sentence_files(const Path& folder);

// Writes into an existing folder. Vectors of tokens have `hidden` numbers.
void write_sentence_files(const Path& folder, const SentenceFiles& files, int64_t hidden);

}  // namespace onebit::formats
