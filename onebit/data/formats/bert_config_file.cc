#include "onebit/data/formats/bert_config_file.h"

#include <optional>
#include <string_view>

#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {

namespace {

constexpr const char* kIdToLabel = "id2label";
constexpr const char* kLabelToId = "label2id";
constexpr const char* kNumLabels = "num_labels";

// Defaults are made for each of them, before the tensors have been seen.
constexpr int64_t kMaxLabels = 1'000'000;

// Labels by id, each set once.
class Labels {
 public:
  Labels(std::string place, size_t count) : place_(std::move(place)), labels_(count), set_(count) {}

  void set(std::optional<size_t> id, std::optional<std::string> label, const std::string& shown) {
    require(id && *id < labels_.size() && !set_[*id] && label,
            "{} must give one name to each of the ids 0 to {}, {} does not fit", place_,
            labels_.size() - 1, quote(shown));
    set_[*id] = true;
    labels_[*id] = std::move(*label);
  }
  std::vector<std::string> take() { return std::move(labels_); }

 private:
  std::string place_;
  std::vector<std::string> labels_;
  std::vector<bool> set_;
};

std::optional<std::string> name_in(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return json_text(value);
  return std::nullopt;
}

std::optional<size_t> id_in(const Json& value) {
  if (value.is_string()) return whole_number<size_t>(value.get<std::string>());
  if (!is_whole(value) || value.get<double>() < 0) return std::nullopt;
  return value.get<size_t>();
}

std::vector<std::string> from_ids(JsonReader& reader) {
  const Json& given = reader.raw(kIdToLabel);
  if (given.is_null()) return {};
  require(given.is_object() || given.is_array(), "{} must be an object", reader.place(kIdToLabel));
  Labels labels(reader.place(kIdToLabel), given.size());
  size_t next = 0;
  for (const auto& [key, value] : given.items()) {
    const auto id = given.is_array() ? std::optional(next++) : whole_number<size_t>(key);
    labels.set(id, name_in(value), key);
  }
  return labels.take();
}

std::vector<std::string> from_names(JsonReader& reader) {
  const Json& given = reader.raw(kLabelToId);
  if (given.is_null()) return {};
  require(given.is_object(), "{} must be an object", reader.place(kLabelToId));
  Labels labels(reader.place(kLabelToId), given.size());
  for (const auto& [key, value] : given.items()) labels.set(id_in(value), key, key);
  return labels.take();
}

}  // namespace

std::vector<std::string> read_label_names(JsonReader& reader) {
  std::vector<std::string> labels = from_ids(reader);
  if (!labels.empty() && !are_default_labels(labels)) {
    reader.accept(kLabelToId);
    return labels;
  }
  // transformers computes with id2label. label2id names the ids that have no name there.
  std::vector<std::string> named = from_names(reader);
  if (labels.empty() || named.size() == labels.size()) labels = std::move(named);
  const int64_t count = reader.integer(kNumLabels, 2);
  require(count >= 1 && count <= kMaxLabels, "{} is {}; it must be at least 1 and at most {}",
          reader.place(kNumLabels), count, kMaxLabels);
  if (!labels.empty() || count == 2) return labels;
  for (size_t id = 0; id < static_cast<size_t>(count); ++id) labels.push_back(default_label(id));
  return labels;
}

namespace {

constexpr const char* kMayBeUnanswerable = "may_be_unanswerable";
constexpr const char* kPreLayerNormType = "bert_pre_layer_norm";

struct Size {
  const char* key;
  int64_t BertConfigFile::*value;
  int64_t ModelSizes::*limited;
  bool required = true;  // false: files of 2018 lack it
};
constexpr Size kSizes[] = {
    {config_keys::kVocabSize, &BertConfigFile::vocab_size, &ModelSizes::vocab_size},
    {config_keys::kHiddenSize, &BertConfigFile::hidden_size, &ModelSizes::hidden_size},
    {config_keys::kLayers, &BertConfigFile::num_hidden_layers, &ModelSizes::layers},
    {config_keys::kHeads, &BertConfigFile::num_attention_heads, &ModelSizes::heads},
    {config_keys::kIntermediateSize, &BertConfigFile::intermediate_size,
     &ModelSizes::intermediate_size},
    {config_keys::kPositions, &BertConfigFile::max_position_embeddings, &ModelSizes::positions,
     false},
    {config_keys::kSegments, &BertConfigFile::type_vocab_size, &ModelSizes::segments, false},
};

int64_t size_of(JsonReader& reader, const std::string& key, std::optional<int64_t> fallback) {
  require(fallback.has_value() || reader.has(key), "{} is missing; a BERT's config has it",
          reader.place(key));
  return reader.integer(key, fallback.value_or(0));
}

int64_t pad_token_id(JsonReader& reader, int64_t fallback) {
  const int64_t id = reader.integer("pad_token_id", fallback);
  require(id >= 0 && id <= INT32_MAX, "{} is {}; it must be the id of a token",
          reader.place("pad_token_id"), id);
  return id;
}

double probability(JsonReader& reader, const std::string& key, double fallback) {
  const double value = reader.number(key, fallback);
  require(value >= 0 && value < 1, "{} is {}; it must be in [0, 1)", reader.place(key), value);
  return value;
}

double positive(JsonReader& reader, const std::string& key, double fallback) {
  const double value = reader.number(key, fallback);
  require(value > 0, "{} is {}; it must be positive", reader.place(key), value);
  return value;
}

GeluForm gelu_form(JsonReader& reader) {
  const std::map<std::string, bool> exact(config_keys::kExactGelu.begin(),
                                          config_keys::kExactGelu.end());
  std::vector<std::string> names;
  for (const auto& [name, is_exact] : config_keys::kExactGelu) names.emplace_back(name);
  const std::string name = reader.choice(config_keys::kActivation, "gelu", names);
  return exact.at(name) ? GeluForm::kErf : GeluForm::kTanh;
}

// float64 values are read as f32. "auto" is the type of the file's tensors, which they show.
DType torch_dtype(JsonReader& reader) {
  const std::string key = reader.has("dtype") ? "dtype" : "torch_dtype";
  const std::string name =
      reader.choice(key, "float32",
                    {"float32", "bfloat16", "float16", "float64", "auto", "torch.float32",
                     "torch.bfloat16", "torch.float16", "torch.float64"});
  return name.ends_with("bfloat16")  ? DType::kBF16
         : name.ends_with("float16") ? DType::kF16
                                     : DType::kF32;
}

const char* torch_name(DType dtype) {
  return dtype == DType::kF32 ? "float32" : dtype == DType::kBF16 ? "bfloat16" : "float16";
}

// Options of transformers' BertConfig that this BERT does not support.
void refuse_other_models(JsonReader& reader) {
  reader.choice("position_embedding_type", "absolute", {"absolute"});
  require(!reader.boolean("is_decoder", false), "{} is true; onebit's BERT is an encoder",
          reader.place("is_decoder"));
  require(!reader.boolean("add_cross_attention", false),
          "{} is true; onebit's BERT has no cross-attention", reader.place("add_cross_attention"));
  require(reader.boolean("tie_word_embeddings", true),
          "{} is false; onebit's BERT ties the decoder to the word embeddings",
          reader.place("tie_word_embeddings"));
}

std::string architecture_of(JsonReader& reader) {
  const Json& list = reader.raw("architectures");
  if (list.is_null() || (list.is_array() && list.empty())) return "BertForPreTraining";
  require(list.is_array() && list[0].is_string(), "{} must be a list of class names",
          reader.place("architectures"));
  return list[0].get<std::string>();
}

}  // namespace

BertConfigFile parse_bert_config(const Json& config, const std::string& place) {
  JsonReader reader(config, place, "");
  BertConfigFile result;
  const std::string type = reader.text("model_type", "bert");
  require(type == "bert" || type == kPreLayerNormType,
          "{} is \"{}\"; onebit reads \"bert\" and \"{}\"", reader.place("model_type"), type,
          kPreLayerNormType);
  refuse_other_models(reader);
  result.architecture = architecture_of(reader);
  result.pre_layer_norm = type == kPreLayerNormType;
  for (const auto& [key, value, limited, required] : kSizes) {
    result.*value = size_of(reader, key, required ? std::nullopt : std::optional(result.*value));
  }
  require_possible_sizes(result, place);
  require(result.hidden_size % result.num_attention_heads == 0,
          "{} is {}, which {} heads do not divide", reader.place(config_keys::kHiddenSize),
          result.hidden_size, result.num_attention_heads);
  result.hidden_act = gelu_form(reader);
  result.hidden_dropout_prob = probability(reader, config_keys::kHiddenDropout, 0.1);
  result.attention_probs_dropout_prob = probability(reader, config_keys::kAttentionDropout, 0.1);
  if (reader.has(config_keys::kClassifierDropout)) {
    result.classifier_dropout = probability(reader, config_keys::kClassifierDropout, 0.1);
  }
  result.layer_norm_eps = positive(reader, config_keys::kLayerNormEps, result.layer_norm_eps);
  result.initializer_range =
      positive(reader, config_keys::kInitializerRange, result.initializer_range);
  result.pad_token_id = pad_token_id(reader, result.pad_token_id);
  result.torch_dtype = torch_dtype(reader);
  result.labels = read_label_names(reader);
  result.problem_type = reader.text("problem_type", "");
  if (reader.has(kMayBeUnanswerable)) {
    result.may_be_unanswerable = reader.boolean(kMayBeUnanswerable, false);
  }
  return result;
}

void require_possible_sizes(const BertConfigFile& config, const std::string& place) {
  ModelSizes sizes;
  for (const Size& size : kSizes) sizes.*size.limited = config.*size.value;
  const auto flaw = find_size_flaw(sizes);
  require(!flaw, "{}: key `{}` {}", place, flaw ? flaw->key : "", flaw ? flaw->reason : "");
}

BertConfigFile read_bert_config(const Path& path) {
  return parse_bert_config(read_json(path, kMaxConfigBytes), path.string());
}

std::string bert_config_text(const BertConfigFile& config) {
  // nlohmann::json sorts its keys, as transformers does.
  nlohmann::json json = {
      {"architectures", {config.architecture}},
      {config_keys::kAttentionDropout, config.attention_probs_dropout_prob},
      {config_keys::kClassifierDropout, nullptr},
      {config_keys::kActivation, config.hidden_act == GeluForm::kErf ? "gelu" : "gelu_new"},
      {config_keys::kHiddenDropout, config.hidden_dropout_prob},
      {config_keys::kInitializerRange, config.initializer_range},
      {config_keys::kLayerNormEps, config.layer_norm_eps},
      {"model_type", config.pre_layer_norm ? kPreLayerNormType : "bert"},
      {"pad_token_id", config.pad_token_id},
      {"position_embedding_type", "absolute"},
      {"tie_word_embeddings", true},
      {"torch_dtype", torch_name(config.torch_dtype)},
      {"use_cache", true},
  };
  for (const Size& size : kSizes) json[size.key] = config.*size.value;
  if (config.classifier_dropout) json[config_keys::kClassifierDropout] = *config.classifier_dropout;
  if (!config.labels.empty()) {
    for (size_t id = 0; id < config.labels.size(); ++id) {
      json["id2label"][std::to_string(id)] = config.labels[id];
      json["label2id"][config.labels[id]] = id;
    }
  }
  if (!config.problem_type.empty()) {
    json["problem_type"] = config.problem_type;
    json["num_labels"] = config.labels.empty() ? 2 : config.labels.size();
  }
  if (config.may_be_unanswerable) json[kMayBeUnanswerable] = *config.may_be_unanswerable;
  return json_text(json, 2) + "\n";
}

}  // namespace onebit::formats
