#include "onebit/program/convert/convert_config.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include "onebit/apps/classify/classification_model.h"
#include "onebit/apps/squad/question_answering_model.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/model/head_names.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::convert {

namespace {

// transformers' models with a head of the name "classifier".
constexpr const char* kClassifierModels[] = {model::kClassifierArchitecture,
                                             model::kTaggerArchitecture, "BertForMultipleChoice"};

std::string architecture_of(const std::set<std::string>& parts, const std::string& said) {
  if (parts.contains(model::kAnswerHead)) return model::kAnswerArchitecture;
  if (parts.contains(model::kClassifierHead)) {
    const bool known = std::find(std::begin(kClassifierModels), std::end(kClassifierModels),
                                 said) != std::end(kClassifierModels);
    if (known) return said;
    // A head for words does not read the pooled first token.
    return parts.contains(model::kPooler) ? model::kClassifierArchitecture
                                          : model::kTaggerArchitecture;
  }
  if (parts.contains(model::kMaskedWordHead)) {
    return parts.contains(model::kNextSentenceHead) ? model::kPretrainingArchitecture
                                                    : model::kMaskedWordArchitecture;
  }
  return parts.contains(model::kNextSentenceHead) ? "BertForNextSentencePrediction"
                                                  : model::kEncoderArchitecture;
}

}  // namespace

TaskHeads find_heads(std::span<const formats::TensorEntry> ours,
                     const std::string& config_architecture) {
  TaskHeads heads;
  std::set<std::string> parts;
  for (const char* part : model::kHeadParts) {
    const bool there = std::any_of(ours.begin(), ours.end(),
                                   [&](const auto& entry) { return entry.name.starts_with(part); });
    if (there) {
      parts.insert(part);
    } else {
      heads.lacking.emplace_back(part);
    }
  }
  for (const auto& entry : ours) {
    // Rows without columns cost nothing in a file, so their number may be any.
    if (entry.name == "classifier.weight" && entry.shape.rank() == 2 && entry.shape[1] > 0) {
      heads.classes = entry.shape[0];
    }
  }
  heads.architecture = architecture_of(parts, config_architecture);
  return heads;
}

std::vector<formats::WantedTensor> all_tensors(const formats::EncoderConfigFile& config,
                                               const TaskHeads& heads) {
  const model::EncoderConfig shape = training::model_config(config);
  std::vector<formats::WantedTensor> wanted;
  std::set<std::string> names;
  const auto add = [&](const ParameterTable& table) {
    for (const ParameterEntry& entry : table.entries()) {
      if (names.insert(entry.name).second) wanted.push_back({entry.name, entry.shape});
    }
  };
  ParameterTable pretraining, answers, classification;
  const model::PreTrainingModel pretraining_model(shape, pretraining,
                                                  model::PreTrainingHeads::kBoth);
  const squad::QuestionAnsweringModel answering_model(shape, answers);
  const classify::ClassificationModel classifier(
      shape, {.outputs = std::max<int64_t>(heads.classes, 1)}, classification);
  add(pretraining);
  add(answers);
  add(classification);
  return wanted;
}

namespace {

using formats::EncoderConfigFile;
using text::CasingEvidence;

// Programs pad vocabularies to multiples of 8 or 64.
constexpr int64_t kMaxPadding = 64;

std::optional<Path> find_file(const std::vector<Path>& folders,
                              std::initializer_list<const char*> names) {
  for (const Path& folder : folders) {
    for (const char* name : names) {
      if (std::filesystem::exists(folder / name)) return folder / name;
    }
  }
  return std::nullopt;
}

// An experiment file of DeepSpeed's BERT has the model under a key of its own. Its vocabulary size
// is a placeholder.
EncoderConfigFile read_config(const Path& path, int64_t words) {
  const Json file = read_json(path, formats::kMaxConfigBytes);
  for (const char* key :
       {"optimizer", "run", "train_batch_size", "train_micro_batch_size_per_gpu"}) {
    require(!file.is_object() || !file.contains(key) || file.contains("bert_model_config"),
            "{}: has the key `{}`: it is a recipe or a configuration of training. --config takes "
            "the config.json of the model",
            path.string(), key);
  }
  const Json* inner =
      file.is_object() && file.contains("bert_model_config") ? &file["bert_model_config"] : nullptr;
  if (inner == nullptr || !inner->is_object()) {
    return formats::parse_encoder_config(file, path.string());
  }
  Json config = *inner;
  config[config_keys::kVocabSize] = words;
  return formats::parse_encoder_config(config, path.string() + ": bert_model_config");
}

std::optional<Path> config_path(const ConvertOptions& options, const std::vector<Path>& folders) {
  return options.config ? options.config : find_file(folders, {"config.json", "bert_config.json"});
}

// The sizes, without the vocabulary's: programs pad its rows.
void require_sizes(const EncoderConfigFile& config, const Path& path, const ConvertSource& source) {
  if (config.family().is_bert()) {
    return formats::require_shape(config, path.string(), source.shape, source.place);
  }
  EncoderConfigFile with_rows = config;
  with_rows.vocab_size = source.shape.word_rows;
  formats::require_sizes_of_tensors(with_rows, path.string(), source.ours, source.place);
}

void set_activation(EncoderConfigFile& config, ChosenActivation activation) {
  config.choices.activation = activation;
  if (config.family().head_has_activation) config.choices.head_activation = activation;
}

// Derives a config from shapes, which do not determine heads and activation.
EncoderConfigFile inferred_config(const ConvertOptions& options, const ConvertSource& source,
                                  int64_t words, std::vector<std::string>& lines) {
  const formats::EncoderShape& shape = source.shape;
  require(options.heads.has_value(),
          "{}: there is no config.json or bert_config.json beside it, and the number of attention "
          "heads cannot be determined from tensors; give --config FILE, or --heads N (hidden size "
          "{}: {} heads if each has 64 columns, as in Google's models)",
          source.place, shape.hidden_size, shape.hidden_size / 64);
  EncoderConfigFile config;
  config.vocab_size = words;
  config.hidden_size = shape.hidden_size;
  config.num_hidden_layers = shape.num_hidden_layers;
  config.num_attention_heads = *options.heads;
  config.intermediate_size = shape.intermediate_size;
  config.max_position_embeddings = shape.max_position_embeddings;
  config.type_vocab_size = shape.type_vocab_size;
  if (source.naming == formats::Naming::kFused) {
    set_activation(config, ChosenActivation::kGeluTanh);
  }
  lines.push_back(
      fmt::format("config: none found; sizes from the tensors, heads as requested, hidden_act {}{}",
                  formats::activation_name(options.activation.value_or(config.choices.activation)),
                  source.naming == formats::Naming::kFused && !options.activation
                      ? " (what DeepSpeed's fused layer computes)"
                      : ""));
  return config;
}

EncoderConfigFile config_from_file(const Path& path, const ConvertOptions& options,
                                   const ConvertSource& source, int64_t words,
                                   std::vector<std::string>& lines) {
  EncoderConfigFile config = read_config(path, words);
  require_sizes(config, path, source);
  const bool is_bert = config.family().is_bert();
  require(!is_bert || !config.choices.norm_before || source.shape.pre_layer_norm,
          "{} is a model with its layer norms before the sublayers, {} has none of their tensors",
          path.string(), source.place);
  require(!options.heads || *options.heads == config.num_attention_heads,
          "--heads {} was given, {} has num_attention_heads {}; give one of them",
          options.heads.value_or(0), path.string(), config.num_attention_heads);
  lines.push_back(fmt::format("config: {}", path.string()));
  const bool may_differ = source.naming == formats::Naming::kFused && !options.activation;
  if (may_differ && config.choices.activation == ChosenActivation::kGeluErf) {
    lines.emplace_back(
        "note: the config has hidden_act gelu; DeepSpeed's fused layer computes gelu_new "
        "regardless of its config: give --hidden-act gelu_new if this model was trained with it");
  }
  return config;
}

EncoderConfigFile decide_config(const ConvertOptions& options, const ConvertSource& source,
                                int64_t words, std::vector<std::string>& lines) {
  const auto path = config_path(options, source.folders);
  EncoderConfigFile config = path ? config_from_file(*path, options, source, words, lines)
                                  : inferred_config(options, source, words, lines);
  require(config.num_attention_heads > 0 && config.hidden_size % config.num_attention_heads == 0,
          "{} attention heads do not divide the hidden size {}", config.num_attention_heads,
          config.hidden_size);
  // Tensors without elements cost nothing, so a small file can list any number of layers.
  formats::require_possible_sizes(config, source.place);
  if (config.family().is_bert() && source.shape.pre_layer_norm) {
    config.model_type = "bert_pre_layer_norm";
    config.choices.norm_before = true;
  }
  if (options.activation) set_activation(config, *options.activation);
  return config;
}

void check_vocabulary(const EncoderConfigFile& config, int64_t words, const Path& vocabulary,
                      const ConvertSource& source, std::vector<std::string>& lines) {
  require(words <= config.vocab_size,
          "{} has {} words, the model has vocab_size {}: they do not match", vocabulary.string(),
          words, config.vocab_size);
  if (const int64_t nameless = config.vocab_size - words; nameless >= kMaxPadding) {
    lines.push_back(fmt::format(
        "check the vocabulary: {} has {} words, the model {}: if it is not the one the model "
        "was trained with, its answers will be noise",
        vocabulary.string(), words, config.vocab_size));
  }
  const int64_t surplus = source.shape.word_rows - config.vocab_size;
  require(surplus >= 0 && surplus < kMaxPadding,
          "{}: the word embeddings have {} rows, the model has vocab_size {}, and {} "
          "has {} words: they do not match",
          source.place, source.shape.word_rows, config.vocab_size, vocabulary.string(), words);
  if (surplus > 0) {
    lines.push_back(fmt::format(
        "padding: rows {} to {} of the word embeddings correspond to no word and are left out",
        config.vocab_size, source.shape.word_rows - 1));
  }
}

// If the vocabulary shows whether text was lower-cased, the config must agree with it.
bool decide_lower_case(const ConvertOptions& options, std::optional<bool> said, const Path& path,
                       CasingEvidence evidence, std::vector<std::string>& lines) {
  const std::string shown =
      evidence == CasingEvidence::kCased ? "many words have capitals" : "no word has a capital";
  const auto against = [&](bool lower_case) {
    return evidence == (lower_case ? CasingEvidence::kCased : CasingEvidence::kUncased);
  };
  if (options.casing) {
    const bool lower_case = *options.casing == text::Casing::kUncased;
    if (against(lower_case)) {
      lines.push_back(fmt::format("note: {} as requested, although in {} {}",
                                  name_of(*options.casing), path.string(), shown));
    }
    return lower_case;
  }
  if (said) {
    require(!against(*said),
            "the tokenizer's config has do_lower_case {}, but in {} {}; give --cased or --uncased "
            "to decide",
            *said, path.string(), shown);
    return *said;
  }
  require(
      evidence != CasingEvidence::kUnclear,
      "{}: neither a tokenizer_config.json nor the words show whether text is lower-cased; give "
      "--cased or --uncased",
      path.string());
  const text::Casing casing =
      evidence == CasingEvidence::kUncased ? text::Casing::kUncased : text::Casing::kCased;
  lines.push_back(
      fmt::format("casing: {}, because in {} {}", name_of(casing), path.string(), shown));
  return casing == text::Casing::kUncased;
}

// Why there is no vocabulary. A folder may have one that says too little.
std::string lack_of_vocabulary(const ConvertSource& source) {
  try {
    for (const Path& folder : source.folders) formats::read_tokenizer(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return fmt::format("{}: there is no vocabulary beside it (vocab.txt, tokenizer.json)",
                     source.place);
}

// For the report: a tokenizer of any kind is converted.
text::Casing casing_of(const formats::TokenizerConfigFile& tokenizer) {
  if (!tokenizer.lower_case) return text::Casing::kCased;
  return tokenizer.strip_accents.value_or(true) ? text::Casing::kUncased
                                                : text::Casing::kLowerCased;
}

}  // namespace

formats::ModelNames names_of_source(const ConvertOptions& options,
                                    const std::vector<Path>& folders) {
  const auto path = config_path(options, folders);
  if (!path) return {};
  require_regular_file(*path, formats::kMaxConfigBytes);
  const Json json = read_json(*path, formats::kMaxConfigBytes);
  if (!json.is_object() || formats::family_in(json, path->string()).is_bert()) return {};
  return formats::names_of(formats::parse_encoder_config(json, path->string()));
}

formats::HuggingFaceFolder describe_model(const ConvertOptions& options,
                                          const ConvertSource& source,
                                          std::vector<std::string>& lines) {
  for (const Path& folder : source.folders) formats::require_regular_files(folder);
  const auto path = options.vocabulary ? options.vocabulary
                                       : find_file(source.folders, {"vocab.txt", "tokenizer.json"});
  if (!path) fail("{}; give --vocab FILE", lack_of_vocabulary(source));
  formats::HuggingFaceFolder model;
  formats::TokenizerFiles files = formats::read_tokenizer_with(*path);
  model.vocabulary = std::move(files.vocabulary);
  const auto vocabulary = text::Vocabulary::from_parts(model.vocabulary, path->string());
  model.config = decide_config(options, source, vocabulary.size(), lines);
  check_vocabulary(model.config, vocabulary.size(), *path, source, lines);
  const auto config = config_path(options, source.folders);
  if (!config) model.config.pad_token_id = vocabulary.pad_id();
  if (config) {
    formats::require_counted_tokens(model.config, model.vocabulary, *config);
    const TaskHeads heads = find_heads(source.ours, model.config.architecture);
    model.config.score_activation = formats::score_activation_beside(
        *config, heads.architecture, static_cast<size_t>(heads.classes));
  }
  const auto& tokenizer = files.config;
  model.tokenizer = tokenizer.value_or(
      formats::TokenizerConfigFile{.model_max_length = model.config.max_position_embeddings});
  if (vocabulary.pipeline() != nullptr) {
    require(!options.casing, "--{} was given; {} says itself how text is normalised",
            name_of(options.casing.value_or(text::Casing::kCased)), path->string());
    lines.push_back(fmt::format("vocabulary: {}, {} words", path->string(), vocabulary.size()));
    return model;
  }
  model.tokenizer->lower_case =
      decide_lower_case(options, tokenizer ? std::optional(tokenizer->lower_case) : std::nullopt,
                        *path, text::casing_of(vocabulary), lines);
  lines.push_back(fmt::format("vocabulary: {}, {} words, {}", path->string(), vocabulary.size(),
                              name_of(casing_of(*model.tokenizer))));
  return model;
}

}  // namespace onebit::convert
