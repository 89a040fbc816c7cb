// config.json of a Hugging Face folder, for the BERT models that onebit supports. Also reads
// Google's bert_config.json and files of 2018-2019, which lack most keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/ground/base/dtype.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::formats {

// The names of a classifier's labels by id, from "id2label" ({"0": "negative", ...}, or a list),
// else from "label2id", also where "id2label" has only default names, else `num_labels` default
// names. Names may be numbers, true and false, as scripts write them for such labels. None if there
// is none of the keys, or num_labels is 2. Errors: ids that are not 0 to n-1, each once, or another
// type.
std::vector<std::string> read_label_names(JsonReader& reader);

inline constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;

enum class GeluForm {
  kErf,   // "gelu"
  kTanh,  // "gelu_new", "gelu_pytorch_tanh", "gelu_fast"
};

struct BertConfigFile {
  std::string architecture = "BertForPreTraining";  // the head's class in transformers
  // No BertModel of transformers has a pre-layer-norm encoder. Such models are marked with
  // model_type "bert_pre_layer_norm", so that no program loads one as the other.
  bool pre_layer_norm = false;
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;
  GeluForm hidden_act = GeluForm::kErf;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  std::optional<double> classifier_dropout;  // absent: hidden_dropout_prob
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;
  int64_t pad_token_id = 0;
  DType torch_dtype = DType::kF32;  // type of the file's tensors: f32 (also for f64), bf16 or f16
  // Names of a classifier's labels by id, or none for the defaults of transformers.
  std::vector<std::string> labels;
  // "single_label_classification", "multi_label_classification", "regression", or "" if not given.
  std::string problem_type;
  // onebit's own key, which transformers keeps and ignores: whether a question-answering model was
  // trained on questions without an answer. Absent: not given.
  std::optional<bool> may_be_unanswerable;

  bool operator==(const BertConfigFile&) const = default;
};

// Keys without meaning here are ignored, as transformers does. Errors (with the path and the key):
// an unknown model_type, a size that is missing or beyond base/config_keys.h, heads that do not
// divide the hidden size, and what onebit's BERT does not support: relative positions, a decoder,
// untied embeddings, another activation.
BertConfigFile parse_bert_config(const Json& config, const std::string& place);
BertConfigFile read_bert_config(const Path& path);

// Error: a size, or all together, beyond the limits of base/config_keys.h.
void require_possible_sizes(const BertConfigFile& config, const std::string& place);

// Formatted as by transformers: sorted keys, two spaces.
std::string bert_config_text(const BertConfigFile& config);

}  // namespace onebit::formats
