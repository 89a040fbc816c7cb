// Converts a checkpoint of any supported format, of a BERT or another family of encoders, to an
// ordinary Hugging Face folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/name_tables.h"
#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/data/text/casing.h"

namespace onebit::convert {

struct ConvertOptions {
  Path input, output;
  std::optional<formats::CheckpointKind> from;  // absent: detected
  // config.json, Google's bert_config.json or an experiment file of DeepSpeed's BERT ("--cf").
  // Absent: the file beside the checkpoint, else the tensors' shapes and `heads`.
  std::optional<Path> config;
  std::optional<int64_t> heads;
  std::optional<ChosenActivation> activation;  // absent: as in the config
  std::optional<Path> vocabulary;  // vocab.txt or tokenizer.json. Absent: the one beside `input`
  std::optional<text::Casing> casing;  // absent: from tokenizer_config.json, else the vocabulary
  std::optional<DType> dtype;          // of the values. Absent: unchanged
  formats::Naming naming = formats::Naming::kHuggingFace;  // of the tensors written
  std::vector<std::string> drop;  // tensors that begin with one of these are left out
};

// Writes the folder, whole or not at all, and returns lines that report findings and decisions.
// Errors: see open_checkpoint() and detect_naming(). Tensors are missing, unexpected or of another
// shape, all listed. A config or a vocabulary is missing or belongs to another model. The
// vocabulary contradicts the casing. `output` exists.
std::vector<std::string> convert(const ConvertOptions& options);

// The words for the options, on the command line and from Python.
inline const std::map<std::string, formats::CheckpointKind> kKinds = {
    {"safetensors", formats::CheckpointKind::kSafetensors},
    {"torch", formats::CheckpointKind::kTorch},
    {"tensorflow", formats::CheckpointKind::kTensorBundle},
    {"deepspeed", formats::CheckpointKind::kDeepSpeed}};
inline const std::map<std::string, formats::Naming> kNamings = {
    {"huggingface", formats::Naming::kHuggingFace},
    {"plain", formats::Naming::kPlain},
    {"fused", formats::Naming::kFused},
    {"google", formats::Naming::kGoogle}};
inline const std::map<std::string, ChosenActivation> kActivations = {
    {"gelu", ChosenActivation::kGeluErf}, {"gelu_new", ChosenActivation::kGeluTanh}};
inline const std::map<std::string, DType> kTypes = {
    {"f32", DType::kF32}, {"bf16", DType::kBF16}, {"f16", DType::kF16}};

}  // namespace onebit::convert
