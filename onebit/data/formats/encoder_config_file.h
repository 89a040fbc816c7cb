// config.json of a Hugging Face folder, for the families of encoders that onebit supports
// (families.h). Also reads Google's bert_config.json and files of 2018-2019, which lack most keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/formats/families.h"
#include "onebit/ground/base/dtype.h"
#include "onebit/ground/base/encoder_choices.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::formats {

// The names of a classifier's labels by id, from "id2label" ({"0": "negative", ...}, or a list),
// else from "label2id", also where "id2label" has only default names, else `num_labels` default
// names. Names may be numbers, true and false, as scripts write them for such labels. None if there
// is none of the keys, or num_labels is 2. Errors: ids that are not 0 to n-1, each once, another
// type, or another num_labels beside "id2label", which versions of transformers read differently.
std::vector<std::string> read_label_names(JsonReader& reader);

// What a CrossEncoder of sentence-transformers applies to a classifier's outputs.
enum class ScoreActivation { kIdentity, kSigmoid };

// The activation of a folder whose files say that a CrossEncoder wrote it, as sentence-transformers
// finds it: "activation_fn" of `own` (config_sentence_transformers.json, or null) or of
// "sentence_transformers" in `config`, or "sbert_ce_default_activation_function" there. Without
// any of these it is the sigmoid for one output, and else nothing. Absent: no CrossEncoder's.
// Error: another activation, with its file.
std::optional<ScoreActivation> read_score_activation(const Json& config, const std::string& place,
                                                     const Json& own, const std::string& own_place,
                                                     size_t outputs);

inline constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;

struct EncoderConfigFile {
  std::string model_type = "bert";  // selects the family
  // The head's class in transformers, with the name of BERT's ("BertForMaskedLM") in every family.
  std::string architecture = "BertForPreTraining";
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;  // of one of the two factors if the feed-forward part is gated
  // The longest sequence, and the rows before choices.first_position, which no token uses.
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;  // 0: the family has no segments
  EncoderChoices choices;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  std::optional<double> classifier_dropout;  // absent: hidden_dropout_prob
  double answer_dropout = 0;                 // before the head for answers
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;
  int64_t pad_token_id = 0;
  // Ids of the tokens before and after a text, which some families' configs repeat.
  std::optional<int64_t> cls_token_id, sep_token_id;
  DType torch_dtype = DType::kF32;  // type of the file's tensors: f32 (also for f64), bf16 or f16
  // Names of a classifier's labels by id, or none for the defaults of transformers.
  std::vector<std::string> labels;
  // "single_label_classification", "multi_label_classification", "regression", or "" if not given.
  std::string problem_type;
  // Absent: the folder is no CrossEncoder's.
  std::optional<ScoreActivation> score_activation;
  // onebit's own key, which transformers keeps and ignores: whether a question-answering model was
  // trained on questions without an answer. Absent: not given.
  std::optional<bool> may_be_unanswerable;

  const Family& family() const { return find_family(model_type, "model_type"); }
  bool operator==(const EncoderConfigFile&) const = default;
};

// The config of a family with its choices and the values of absent keys.
EncoderConfigFile config_of_family(std::string_view model_type);

// The name of an activation in config.json. Error: it has none.
const char* activation_name(ChosenActivation kind);

// Keys without meaning here are ignored, as transformers does. Errors (with the path and the key):
// an unknown model_type, a size that is missing or beyond base/config_keys.h, heads that do not
// divide the hidden size, and what onebit's encoder does not support: relative positions, a
// decoder, scaled rotary positions, windows in another order than every n-th layer, another
// activation.
EncoderConfigFile parse_encoder_config(const Json& config, const std::string& place);
EncoderConfigFile read_encoder_config(const Path& path);

// The family that a config names, before anything else is read. Error: find_family()'s.
const Family& family_in(const Json& config, const std::string& place);

// The family whose names the tensors beside this config have.
ModelNames names_of(const EncoderConfigFile& config);

// Error: a size, or all together, beyond the limits of base/config_keys.h.
void require_possible_sizes(const EncoderConfigFile& config, const std::string& place);

// Formatted as by transformers: sorted keys, two spaces. Error: the config cannot be written in its
// family's keys, since a choice is not the family's.
std::string encoder_config_text(const EncoderConfigFile& config);

}  // namespace onebit::formats
