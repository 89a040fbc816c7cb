// What tokenizer_files() writes, and the casing that such files name.
#include <algorithm>
#include <set>
#include <utility>

#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/data/tokenizer_files/tokenizer_json.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::formats {
namespace {

using text::AddedToken;

nlohmann::json settings_of(const AddedToken& token) {
  return {{"content", token.content},         {"lstrip", token.lstrip},
          {"normalized", token.normalized},   {"rstrip", token.rstrip},
          {"single_word", token.single_word}, {"special", token.special}};
}

nlohmann::json names_json(const text::SpecialNames& names) {
  return {{"cls_token", names.cls},
          {"mask_token", names.mask},
          {"pad_token", names.pad},
          {"sep_token", names.sep},
          {"unk_token", names.unknown}};
}

std::string config_text(const TokenizerConfigFile& config, const text::Vocabulary& vocabulary) {
  nlohmann::json json = names_json(vocabulary.names());
  json["do_lower_case"] = config.lower_case;
  json["model_max_length"] = config.model_max_length;
  json["never_split"] = nullptr;
  json["strip_accents"] = config.strip_accents ? nlohmann::json(*config.strip_accents) : nullptr;
  json["tokenize_chinese_chars"] = config.tokenize_chinese_chars;
  const text::PairTemplate& pair = vocabulary.pair_template();
  // The class that makes this template, or one that takes it from tokenizer.json.
  const bool is_bert = pair == text::PairTemplate();
  const bool is_mpnet = pair == text::PairTemplate{.separators = 2, .second_segment = 0};
  json["tokenizer_class"] = is_bert    ? "BertTokenizer"
                            : is_mpnet ? "MPNetTokenizer"
                                       : "PreTrainedTokenizerFast";
  // Of these only BertTokenizer gives segments, unless the file says otherwise.
  if (vocabulary.has_segments() != is_bert) {
    json["model_input_names"] = {"input_ids", "attention_mask"};
    if (!is_bert) json["model_input_names"] = {"input_ids", "token_type_ids", "attention_mask"};
  }
  for (const auto& [key, value] : vocabulary.kept().members) {
    json[key] = nlohmann::json::parse(value);
  }
  if (!vocabulary.is_plain()) {
    for (const AddedToken& token : vocabulary.added()) {
      json["added_tokens_decoder"][std::to_string(token.id)] = settings_of(token);
    }
  }
  return json_text(json, 2) + "\n";
}

// Whether a reader would take the rules of the model's class instead of the file's. A file without
// a template stays alone, so that [CLS] and [SEP] are put around a text.
bool takes_rules_of_model(const std::map<std::string, std::string>& files) {
  const auto file = files.find(kTokenizerJson);
  if (file == files.end() || files.contains(kTokenizerConfigJson)) return false;
  const Json json = parse_json(file->second, kTokenizerJson);
  return json.is_object() && !json.value("post_processor", Json()).is_null();
}

std::string own_rules_text(bool has_segments) {
  nlohmann::json names = {"input_ids", "attention_mask"};
  if (has_segments) names = {"input_ids", "token_type_ids", "attention_mask"};
  return json_text({{"model_input_names", std::move(names)},
                    {"tokenizer_class", "PreTrainedTokenizerFast"}},
                   2) +
         "\n";
}

// The special tokens without a role of BERT's.
std::vector<std::string> other_specials(const text::Vocabulary& vocabulary) {
  const text::SpecialNames& names = vocabulary.names();
  const std::set<std::string> roles = {names.cls, names.mask, names.pad, names.sep, names.unknown};
  std::vector<std::string> others;
  for (const AddedToken& token : vocabulary.added()) {
    if (token.special && !roles.contains(token.content)) others.push_back(token.content);
  }
  return others;
}

std::string specials_text(const text::Vocabulary& vocabulary) {
  nlohmann::json json = names_json(vocabulary.names());
  const std::vector<std::string> others = other_specials(vocabulary);
  if (!others.empty()) json["additional_special_tokens"] = others;
  return json_text(json, 2) + "\n";
}

void add_kept_files(const text::KeptSettings& kept, std::vector<TextFile>& files) {
  for (const auto& [name, content] : kept.files) files.push_back({name, content});
}

}  // namespace

std::vector<TextFile> tokenizer_files(const TokenizerFiles& tokenizer) {
  if (const auto& pipeline = tokenizer.vocabulary.pipeline) {
    std::vector<TextFile> files;
    for (const auto& [name, text] : pipeline->files) files.push_back({name, text});
    if (takes_rules_of_model(pipeline->files)) {
      files.push_back({kTokenizerConfigJson, own_rules_text(tokenizer.vocabulary.has_segments)});
    }
    add_kept_files(tokenizer.vocabulary.kept, files);
    return files;
  }
  ONEBIT_INVARIANT(tokenizer.config.has_value());
  const TokenizerConfigFile& config = *tokenizer.config;
  const auto vocabulary = text::Vocabulary::from_parts(tokenizer.vocabulary, kVocabTxt);
  const TokenizerJson json{.vocabulary = tokenizer.vocabulary.tokens,
                           .added = vocabulary.added(),
                           .lower_case = config.lower_case,
                           .strip_accents = config.strip_accents,
                           .handle_chinese_chars = config.tokenize_chinese_chars,
                           .unk_token = {},
                           .pipeline = {},
                           .pair = tokenizer.vocabulary.pair,
                           .decoder = tokenizer.vocabulary.decoder,
                           .cls_token = {},
                           .sep_token = {}};
  std::vector<TextFile> files = {{kVocabTxt, text::vocabulary_text(tokenizer.vocabulary.tokens)},
                                 {kTokenizerConfigJson, config_text(config, vocabulary)},
                                 {kSpecialTokensMapJson, specials_text(vocabulary)},
                                 {kTokenizerJson, tokenizer_json_text(json, vocabulary.names())}};
  if (vocabulary.size() > vocabulary.model_size()) {
    nlohmann::json added = nlohmann::json::object();
    for (const AddedToken& token : vocabulary.added()) {
      if (token.id >= vocabulary.model_size()) added[token.content] = token.id;
    }
    files.push_back({kAddedTokensJson, json_text(added, 2) + "\n"});
  }
  add_kept_files(tokenizer.vocabulary.kept, files);
  return files;
}

text::Casing casing_of(const TokenizerConfigFile& config, const std::string& place) {
  const bool strips = config.strip_accents.value_or(config.lower_case);
  require(config.tokenize_chinese_chars && (config.lower_case || !strips),
          "{}: its tokenizer strips accents without lower-casing, or does not split Chinese "
          "characters (strip_accents, tokenize_chinese_chars): onebit's does not do that",
          place);
  if (!config.lower_case) return text::Casing::kCased;
  return strips ? text::Casing::kUncased : text::Casing::kLowerCased;
}

}  // namespace onebit::formats
