// The families of encoders that onebit reads and writes as transformers does: one row each, which
// says what the family computes, and how its config.json and its tensors call it. config.json
// selects the row by its model_type. A new family is a row and a table of names (families.cc).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/formats/name_tables.h"
#include "onebit/ground/base/encoder_choices.h"

namespace onebit::formats {

// A family's keys of config.json. An empty key is one that the family does not have.
struct ConfigKeys {
  std::string_view hidden_size = "hidden_size", layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads", intermediate_size = "intermediate_size";
  std::string_view positions = "max_position_embeddings", segments = "type_vocab_size";
  std::string_view embedding_size = "", score_buckets = "";
  std::string_view activation = "hidden_act", epsilon = "layer_norm_eps";
  std::string_view initializer_range = "initializer_range";
  std::string_view hidden_dropout = "hidden_dropout_prob";
  std::string_view attention_dropout = "attention_probs_dropout_prob";
  std::string_view classifier_dropout = "classifier_dropout";
  std::string_view answer_dropout = "";  // before the head for answers
};

// A key that is true or false, and the choice, or the two choices, that it makes.
struct ChoiceKey {
  std::string_view key;
  bool EncoderChoices::*choice;
  bool EncoderChoices::*second = nullptr;
};

// How config.json says by which angles rotary positions turn.
enum class RotaryKeys : uint8_t {
  kNone,      // the family has no such positions, or no key
  kOne,       // rope_parameters or rope_theta
  kByWindow,  // one angle for layers with a window, one for the others, and which layers they are
};

struct Family {
  std::string_view model_type;    // "roberta"
  std::string_view title;         // "RoBERTa"
  std::string_view class_prefix;  // of its classes in transformers: "Roberta"
  EncoderChoices choices = {};
  ConfigKeys keys = {};
  std::span<const ChoiceKey> choice_keys = {};
  RotaryKeys rotary = RotaryKeys::kNone;
  // Whether the first position follows the id of the padding token.
  bool positions_after_pad = false;
  // Whether the masked-word head has the activation of the feed-forward part.
  bool head_has_activation = true;
  // What a config.json without the key means.
  int64_t positions = 512, segments = 2, pad_token_id = 0;
  double epsilon = 1e-12, hidden_dropout = 0.1, attention_dropout = 0.1, answer_dropout = 0;

  // Names of tensors: what precedes the encoder's ("roberta."), the word embeddings, and the
  // beginnings of the names of an encoder that was saved without that prefix.
  std::string_view tensor_prefix = "bert.";
  std::string_view word_embeddings = "embeddings.word_embeddings.weight";
  std::span<const std::string_view> parts = {};
  std::span<const NameRow> rows = {};
  std::string_view other_prefix = "";  // another spelling of tensor_prefix

  // Classes that are not called like others': NeoBERT's.
  std::string_view encoder_class = "", masked_word_class = "";
  std::string_view tokenizers = "WordPiece";  // which kinds its folders have

  // Families with BERT's class and names, which other programs' checkpoints may have, too.
  bool is_bert() const { return class_prefix == "Bert"; }
};

std::span<const Family> families();
const Family& bert_family();
// Error, which begins with `place`: no family has this model_type. The message lists all.
const Family& find_family(std::string_view model_type, const std::string& place);

// onebit has one name for each head, BERT's ("BertForSequenceClassification"). A family's config
// has the family's ("RobertaForSequenceClassification").
std::string onebit_class(const Family& family, const std::string& own);
// Error: the family has no such class.
std::string own_class(const Family& family, const std::string& onebits);
HeadClass head_class_of(const std::string& onebits);

// The family whose names tensors have, and what else determines them.
struct ModelNames {
  const Family* family = &bert_family();
  HeadClass head = HeadClass::kEncoder;
  int64_t attention_heads = 0;
};

// The rows of a name in the family's files: none, one, or several for a fused tensor. If the name
// means other tensors in other classes, the row of the file's class.
std::vector<RowMatch> rows_to_ours(const ModelNames& names, std::string_view name);
// The rows by which a tensor of ours gets its name in the family's files.
std::vector<RowMatch> rows_from_ours(const ModelNames& names, std::string_view name);

// The table of docs/models.md.
std::string families_table();

}  // namespace onebit::formats
