#include "onebit/data/formats/encoder_config_file.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "onebit/data/formats/config_choices.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {

namespace {

constexpr const char* kMayBeUnanswerable = "may_be_unanswerable";
constexpr const char* kModelType = "model_type";
// Its config says one and a half times the width of its feed-forward part, which is rounded up to a
// multiple of 8.
constexpr std::string_view kNeoBert = "neobert";

struct Size {
  const char* canonical;  // its key in config_keys.h
  std::string_view ConfigKeys::*key;
  int64_t EncoderConfigFile::*value;
  int64_t ModelSizes::*limited;
  bool required = true;  // false: files of 2018 lack it
};
constexpr Size kSizes[] = {
    {config_keys::kVocabSize, nullptr, &EncoderConfigFile::vocab_size, &ModelSizes::vocab_size},
    {config_keys::kHiddenSize, &ConfigKeys::hidden_size, &EncoderConfigFile::hidden_size,
     &ModelSizes::hidden_size},
    {config_keys::kLayers, &ConfigKeys::layers, &EncoderConfigFile::num_hidden_layers,
     &ModelSizes::layers},
    {config_keys::kHeads, &ConfigKeys::heads, &EncoderConfigFile::num_attention_heads,
     &ModelSizes::heads},
    {config_keys::kIntermediateSize, &ConfigKeys::intermediate_size,
     &EncoderConfigFile::intermediate_size, &ModelSizes::intermediate_size},
    {config_keys::kPositions, &ConfigKeys::positions, &EncoderConfigFile::max_position_embeddings,
     &ModelSizes::positions, false},
    {config_keys::kSegments, &ConfigKeys::segments, &EncoderConfigFile::type_vocab_size,
     &ModelSizes::segments, false},
};

// Empty: the family has no such key.
std::string key_of(const Size& size, const Family& family) {
  return std::string(size.key == nullptr ? size.canonical : family.keys.*size.key);
}

int64_t size_of(JsonReader& reader, const std::string& key, std::optional<int64_t> fallback,
                const Family& family) {
  require(fallback.has_value() || reader.has(key), "{} is missing; a {}'s config has it",
          reader.place(key), family.title);
  return reader.integer(key, fallback.value_or(0));
}

int64_t token_id(JsonReader& reader, const char* key, int64_t fallback) {
  const int64_t id = reader.integer(key, fallback);
  require(id >= 0 && id <= INT32_MAX, "{} is {}; it must be the id of a token", reader.place(key),
          id);
  return id;
}

double probability(JsonReader& reader, std::string_view key_name, double fallback) {
  if (key_name.empty()) return fallback;
  const std::string key(key_name);
  const double value = reader.number(key, fallback);
  require(value >= 0 && value < 1, "{} is {}; it must be in [0, 1)", reader.place(key), value);
  return value;
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

// Options of transformers' configs that onebit's encoder does not support.
void refuse_other_models(JsonReader& reader, const Family& family) {
  const bool table = family.choices.position_table;
  const std::string positions =
      table ? reader.text("position_embedding_type", "absolute") : "absolute";
  require(positions == "absolute", "{} is {}; onebit's {} has a table of absolute positions",
          reader.place("position_embedding_type"), quote(positions), family.title);
  require(!reader.boolean("is_decoder", false), "{} is true; onebit's {} is an encoder",
          reader.place("is_decoder"), family.title);
  require(!reader.boolean("add_cross_attention", false),
          "{} is true; onebit's {} has no cross-attention", reader.place("add_cross_attention"),
          family.title);
  require(!family.choices.tied || reader.boolean("tie_word_embeddings", true),
          "{} is false; onebit's {} ties the decoder to the word embeddings",
          reader.place("tie_word_embeddings"), family.title);
}

// NeoBERT's own program can make other models of it.
void refuse_other_neoberts(JsonReader& reader) {
  for (const auto& [key, wanted] :
       {std::pair("rope", true), std::pair("rms_norm", true), std::pair("ngpt", false)}) {
    require(reader.boolean(key, wanted) == wanted, "{} is {}; onebit's NeoBERT has {}",
            reader.place(key), !wanted, wanted);
  }
  reader.choice("hidden_act", "swiglu", {"swiglu", "SwiGLU"});
}

std::string architecture_of(JsonReader& reader, const Family& family) {
  const Json& list = reader.raw("architectures");
  if (list.is_null() || (list.is_array() && list.empty())) {
    return family.is_bert() ? "BertForPreTraining" : "BertModel";
  }
  require(list.is_array() && list[0].is_string(), "{} must be a list of class names",
          reader.place("architectures"));
  return onebit_class(family, list[0].get<std::string>());
}

void read_sizes(JsonReader& reader, const Family& family, const std::string& place,
                EncoderConfigFile& result) {
  for (const Size& size : kSizes) {
    const std::string key = key_of(size, family);
    if (key.empty()) continue;
    int64_t& value = result.*size.value;
    value = size_of(reader, key, size.required ? std::nullopt : std::optional(value), family);
  }
  if (!family.keys.embedding_size.empty()) {
    const std::string key(family.keys.embedding_size);
    const int64_t width = reader.integer(key, result.hidden_size);
    require(width >= 1 && width <= largest_size(config_keys::kHiddenSize),
            "{} is {}; it must be at least 1", reader.place(key), width);
    result.choices.embedding_size = width == result.hidden_size ? 0 : width;
  }
  require_possible_sizes(result, place);
  if (family.model_type == kNeoBert) {
    result.intermediate_size = (2 * result.intermediate_size / 3 + 7) / 8 * 8;
  }
  const std::string hidden(family.keys.hidden_size);
  require(result.hidden_size % result.num_attention_heads == 0,
          "{} is {}, which {} heads do not divide", reader.place(hidden), result.hidden_size,
          result.num_attention_heads);
}

// ModernBERT drops after the embeddings and inside the feed-forward part, where onebit drops after
// either part. That has no influence on a trained model.
double modern_dropout(JsonReader& reader) {
  const double embeddings = probability(reader, "embedding_dropout", 0);
  return std::max(embeddings, probability(reader, "mlp_dropout", 0));
}

// Whether the key says it of the head for answers. ModernBERT has one key for all heads.
bool has_answer_dropout(const EncoderConfigFile& config) {
  const ConfigKeys& keys = config.family().keys;
  const bool is_shared = keys.answer_dropout == keys.classifier_dropout;
  return !is_shared || head_class_of(config.architecture) == HeadClass::kSpan;
}

void read_dropouts(JsonReader& reader, const Family& family, EncoderConfigFile& result) {
  const ConfigKeys& keys = family.keys;
  result.hidden_dropout_prob = probability(reader, keys.hidden_dropout, result.hidden_dropout_prob);
  if (family.rotary == RotaryKeys::kByWindow) result.hidden_dropout_prob = modern_dropout(reader);
  result.attention_probs_dropout_prob =
      probability(reader, keys.attention_dropout, result.attention_probs_dropout_prob);
  const std::string classifier(keys.classifier_dropout);
  const bool own_key = classifier != config_keys::kClassifierDropout;
  const bool has_it = !own_key || head_class_of(result.architecture) == HeadClass::kSequence;
  if (!classifier.empty() && has_it && reader.has(classifier)) {
    result.classifier_dropout = probability(reader, classifier, 0.1);
  }
  if (has_answer_dropout(result)) {
    result.answer_dropout = probability(reader, keys.answer_dropout, result.answer_dropout);
  }
}

void read_token_ids(JsonReader& reader, const Family& family, EncoderConfigFile& result) {
  result.pad_token_id = token_id(reader, "pad_token_id", result.pad_token_id);
  if (family.positions_after_pad) result.choices.first_position = result.pad_token_id + 1;
  if (family.is_bert()) return;
  const auto optional = [&](const char* key) {
    return reader.has(key) ? std::optional(token_id(reader, key, 0)) : std::nullopt;
  };
  result.cls_token_id = optional("bos_token_id");
  result.sep_token_id = optional("eos_token_id");
}

}  // namespace

const Family& family_in(const Json& config, const std::string& place) {
  JsonReader reader(config, place, "");
  return find_family(reader.text(kModelType, "bert"), reader.place(kModelType));
}

EncoderConfigFile config_of_family(std::string_view model_type) {
  const std::string place = kModelType;  // g++ 14 suspects a reference to a temporary one
  const Family& family = find_family(model_type, place);
  EncoderConfigFile config;
  config.model_type = model_type;
  if (!family.is_bert()) config.architecture = "BertModel";
  config.choices = family.choices;
  config.max_position_embeddings = family.positions;
  config.type_vocab_size = family.segments;
  config.pad_token_id = family.pad_token_id;
  config.layer_norm_eps = family.epsilon;
  config.hidden_dropout_prob = family.hidden_dropout;
  config.attention_probs_dropout_prob = family.attention_dropout;
  config.answer_dropout = family.answer_dropout;
  return config;
}

EncoderConfigFile parse_encoder_config(const Json& given, const std::string& place) {
  const Family& family = family_in(given, place);
  const Json config =
      family.rotary == RotaryKeys::kOne ? with_keys_of_transformers(given, place) : given;
  JsonReader reader(config, place, "");
  EncoderConfigFile result = config_of_family(family.model_type);
  refuse_other_models(reader, family);
  if (family.model_type == kNeoBert) refuse_other_neoberts(reader);
  result.architecture = architecture_of(reader, family);
  read_sizes(reader, family, place, result);
  read_choices(reader, family, result);
  read_dropouts(reader, family, result);
  result.layer_norm_eps = read_positive(reader, family.keys.epsilon, result.layer_norm_eps);
  result.initializer_range =
      read_positive(reader, family.keys.initializer_range, result.initializer_range);
  read_token_ids(reader, family, result);
  const int64_t first = result.choices.position_table ? result.choices.first_position : 0;
  require(result.max_position_embeddings > first,
          "{} is {}; the first {} positions are not used, so there must be more",
          reader.place(std::string(family.keys.positions)), result.max_position_embeddings, first);
  result.torch_dtype = torch_dtype(reader);
  result.labels = read_label_names(reader);
  result.problem_type = reader.text("problem_type", "");
  if (reader.has(kMayBeUnanswerable)) {
    result.may_be_unanswerable = reader.boolean(kMayBeUnanswerable, false);
  }
  return result;
}

ModelNames names_of(const EncoderConfigFile& config) {
  return {.family = &config.family(),
          .head = head_class_of(config.architecture),
          .attention_heads = config.num_attention_heads};
}

void require_possible_sizes(const EncoderConfigFile& config, const std::string& place) {
  const Family& family = config.family();
  ModelSizes sizes;
  for (const Size& size : kSizes) sizes.*size.limited = config.*size.value;
  // A family without segments.
  if (family.keys.segments.empty()) sizes.segments = 1;
  const auto flaw = find_size_flaw(sizes);
  if (!flaw) return;
  std::string key = flaw->key;
  for (const Size& size : kSizes) {
    if (flaw->key == size.canonical && !key_of(size, family).empty()) key = key_of(size, family);
  }
  fail("{}: key `{}` {}", place, key, flaw->reason);
}

EncoderConfigFile read_encoder_config(const Path& path) {
  return parse_encoder_config(read_json(path, kMaxConfigBytes), path.string());
}

namespace {

void write_dropouts(nlohmann::json& json, const Family& family, const EncoderConfigFile& config) {
  const ConfigKeys& keys = family.keys;
  const auto put = [&](std::string_view key, double value) {
    if (!key.empty()) json[std::string(key)] = value;
  };
  put(keys.hidden_dropout, config.hidden_dropout_prob);
  put(keys.attention_dropout, config.attention_probs_dropout_prob);
  if (family.rotary == RotaryKeys::kByWindow) {
    json["embedding_dropout"] = json["mlp_dropout"] = config.hidden_dropout_prob;
  }
  if (keys.classifier_dropout == config_keys::kClassifierDropout) {
    const bool may_be_null = family.rotary != RotaryKeys::kByWindow;
    const double fallback = config.hidden_dropout_prob;
    if (may_be_null) json[config_keys::kClassifierDropout] = nullptr;
    if (config.classifier_dropout || (!may_be_null && fallback > 0)) {
      json[config_keys::kClassifierDropout] = config.classifier_dropout.value_or(fallback);
    }
  } else if (head_class_of(config.architecture) == HeadClass::kSequence) {
    put(keys.classifier_dropout, config.classifier_dropout.value_or(config.hidden_dropout_prob));
  }
  if (!has_answer_dropout(config)) return;
  const bool is_shared = keys.answer_dropout == keys.classifier_dropout;
  if (is_shared && config.answer_dropout == 0 && !config.classifier_dropout) {
    json.erase(std::string(keys.answer_dropout));
  } else {
    put(keys.answer_dropout, config.answer_dropout);
  }
}

void write_tokens(nlohmann::json& json, const Family& family, const EncoderConfigFile& config) {
  json["pad_token_id"] = config.pad_token_id;
  const bool has_all = family.rotary == RotaryKeys::kByWindow;
  if (config.cls_token_id) json["bos_token_id"] = *config.cls_token_id;
  if (config.sep_token_id) json["eos_token_id"] = *config.sep_token_id;
  if (has_all && config.cls_token_id) json["cls_token_id"] = *config.cls_token_id;
  if (has_all && config.sep_token_id) json["sep_token_id"] = *config.sep_token_id;
}

void write_labels(nlohmann::json& json, const EncoderConfigFile& config) {
  for (size_t id = 0; id < config.labels.size(); ++id) {
    json["id2label"][std::to_string(id)] = config.labels[id];
    json["label2id"][config.labels[id]] = id;
  }
  if (config.score_activation) {
    json["sentence_transformers"]["activation_fn"] =
        *config.score_activation == ScoreActivation::kSigmoid
            ? "torch.nn.modules.activation.Sigmoid"
            : "torch.nn.modules.linear.Identity";
  }
  if (config.problem_type.empty()) return;
  json["problem_type"] = config.problem_type;
  json["num_labels"] = config.labels.empty() ? 2 : config.labels.size();
}

}  // namespace

std::string encoder_config_text(const EncoderConfigFile& config) {
  const Family& family = config.family();
  // nlohmann::json sorts its keys, as transformers does.
  nlohmann::json json = {
      {"architectures", {own_class(family, config.architecture)}},
      {kModelType, config.model_type},
      {"tie_word_embeddings", family.choices.tied},
      {"torch_dtype", torch_name(config.torch_dtype)},
  };
  if (family.is_bert()) json["use_cache"] = true;
  if (family.choices.position_table && !family.keys.segments.empty()) {
    json["position_embedding_type"] = "absolute";
  }
  for (const Size& size : kSizes) {
    const std::string key = key_of(size, family);
    if (!key.empty()) json[key] = config.*size.value;
  }
  if (!family.keys.embedding_size.empty()) {
    const int64_t width = config.choices.embedding_size;
    json[std::string(family.keys.embedding_size)] = width > 0 ? width : config.hidden_size;
  }
  if (config.model_type == kNeoBert) {
    json[std::string(family.keys.intermediate_size)] = config.intermediate_size * 3 / 2;
  }
  for (const auto& [key, value] :
       {std::pair(family.keys.epsilon, config.layer_norm_eps),
        std::pair(family.keys.initializer_range, config.initializer_range)}) {
    if (!key.empty()) json[std::string(key)] = value;
  }
  write_choices(json, family, config);
  write_dropouts(json, family, config);
  write_tokens(json, family, config);
  write_labels(json, config);
  if (config.may_be_unanswerable) json[kMayBeUnanswerable] = *config.may_be_unanswerable;
  require(parse_encoder_config(json, "config.json").choices == config.choices,
          "a model of the family {} computes what transformers' {} cannot: choose another "
          "model_type, or its own choices",
          config.model_type, family.title);
  return json_text(json, 2) + "\n";
}

}  // namespace onebit::formats
