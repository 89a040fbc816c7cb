#include "onebit/formats/tokenizer_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "onebit/base/json.h"
#include "onebit/formats/quote.h"
#include "onebit/text/vocabulary.h"

namespace onebit::formats {
namespace {

constexpr const char* kTokenizerClasses[] = {"BertTokenizer", "BertTokenizerFast"};

// A special token is a string, or an object with its text as "content".
std::string special_token(JsonReader& reader, const std::string& key, const std::string& fallback) {
  const Json& value = reader.raw(key);
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  return reader.text(key, fallback);
}

// Newer versions write 10^30 for "no limit".
int64_t model_max_length(JsonReader& reader) {
  const double value = reader.number("model_max_length", 512);
  require(value >= 1, "{} is {}; it must be positive", reader.place("model_max_length"), value);
  return value > 1e9 ? 1'000'000'000 : static_cast<int64_t>(value);
}

Json ids_of(const std::vector<std::string>& vocabulary) {
  Json ids = Json::object();
  // Its members are a list, and operator[] would search it for every token.
  std::vector<std::pair<const std::string, Json>>& members = ids.get_ref<Json::object_t&>();
  members.reserve(vocabulary.size());
  for (size_t id = 0; id < vocabulary.size(); ++id) members.emplace_back(vocabulary[id], id);
  return ids;
}

// The special tokens that the vocabulary has, by id.
Json added_tokens(const std::vector<std::string>& vocabulary, const TokenizerConfigFile& config) {
  const std::set<std::string> special = {config.unk_token, config.sep_token, config.pad_token,
                                         config.cls_token, config.mask_token};
  Json list = Json::array();
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (!special.contains(vocabulary[id])) continue;
    list.push_back({{"id", id},
                    {"content", vocabulary[id]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  }
  return list;
}

// [CLS] A [SEP], or [CLS] A [SEP] B [SEP].
Json template_of(const std::vector<std::string>& vocabulary, const TokenizerConfigFile& config) {
  const auto token = [](const std::string& text, int segment) -> Json {
    return {{"SpecialToken", {{"id", text}, {"type_id", segment}}}};
  };
  const auto sequence = [](const char* name, int segment) -> Json {
    return {{"Sequence", {{"id", name}, {"type_id", segment}}}};
  };
  const Json first = {token(config.cls_token, 0), sequence("A", 0), token(config.sep_token, 0)};
  Json pair = first;
  pair.push_back(sequence("B", 1));
  pair.push_back(token(config.sep_token, 1));
  Json tokens = Json::object();
  for (const std::string& text : std::set<std::string>{config.cls_token, config.sep_token}) {
    const auto at = std::find(vocabulary.begin(), vocabulary.end(), text);
    tokens[text] = {{"id", text},
                    {"ids", Json::array({at - vocabulary.begin()})},
                    {"tokens", Json::array({text})}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", first},
          {"pair", pair},
          {"special_tokens", tokens}};
}

}  // namespace

// {"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, ...}}}
std::vector<std::string> parse_word_piece_vocabulary(const Json& json, const std::string& place) {
  const Json model = json.is_object() ? json.value("model", Json::object()) : Json::object();
  const Json vocabulary = model.is_object() ? model.value("vocab", Json()) : Json();
  require(vocabulary.is_object() && !vocabulary.empty(),
          "{}: key `model.vocab` is not a WordPiece vocabulary", place);
  std::vector<std::string> tokens(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    require(id.is_number_unsigned() && id.get<uint64_t>() < tokens.size() &&
                tokens[id.get<size_t>()].empty() && !token.empty(),
            "{}: key `model.vocab`: the id of {} is not one of 0 to {}, each once", place,
            quote(token), tokens.size() - 1);
    tokens[id.get<size_t>()] = token;
  }
  return tokens;
}

std::optional<TokenizerConfigFile> parse_tokenizer_config(const Json& json,
                                                          const std::string& place) {
  JsonReader reader(json, place, "");
  reader.choice("tokenizer_class", "BertTokenizer",
                {std::begin(kTokenizerClasses), std::end(kTokenizerClasses)});
  if (!reader.has("do_lower_case")) return std::nullopt;
  TokenizerConfigFile config;
  config.lower_case = reader.boolean("do_lower_case", true);
  if (reader.has("strip_accents")) config.strip_accents = reader.boolean("strip_accents", true);
  config.tokenize_chinese_chars = reader.boolean("tokenize_chinese_chars", true);
  config.model_max_length = model_max_length(reader);
  config.unk_token = special_token(reader, "unk_token", config.unk_token);
  config.sep_token = special_token(reader, "sep_token", config.sep_token);
  config.pad_token = special_token(reader, "pad_token", config.pad_token);
  config.cls_token = special_token(reader, "cls_token", config.cls_token);
  config.mask_token = special_token(reader, "mask_token", config.mask_token);
  return config;
}

// {"normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null, ...}}
std::optional<TokenizerConfigFile> parse_tokenizer_json(const Json& json,
                                                        const std::string& place) {
  JsonReader reader(json, place, "");
  const Json& value = reader.raw("normalizer");
  if (!value.is_object()) return std::nullopt;
  JsonReader normalizer = reader.object("normalizer");
  if (!normalizer.has("lowercase")) return std::nullopt;
  TokenizerConfigFile config;
  config.lower_case = normalizer.boolean("lowercase", true);
  if (normalizer.has("strip_accents")) {
    config.strip_accents = normalizer.boolean("strip_accents", true);
  }
  config.tokenize_chinese_chars = normalizer.boolean("handle_chinese_chars", true);
  return config;
}

std::vector<std::string> read_vocabulary(const Path& folder) {
  const Path plain = folder / "vocab.txt", combined = folder / "tokenizer.json";
  if (std::filesystem::exists(plain)) return text::read_vocabulary_lines(plain);
  require(std::filesystem::exists(combined),
          "{}: contains no vocabulary: neither vocab.txt nor tokenizer.json exists",
          folder.string());
  return read_vocabulary_file(combined);
}

std::vector<std::string> read_vocabulary_file(const Path& path) {
  return path.extension() == ".json" ? parse_word_piece_vocabulary(read_json(path), path.string())
                                     : text::read_vocabulary_lines(path);
}

std::optional<TokenizerConfigFile> read_tokenizer_config(const Path& folder) {
  const Path own = folder / "tokenizer_config.json", combined = folder / "tokenizer.json";
  std::optional<TokenizerConfigFile> config, other;
  if (std::filesystem::exists(own)) config = parse_tokenizer_config(read_json(own), own.string());
  if (std::filesystem::exists(combined))
    other = parse_tokenizer_json(read_json(combined), combined.string());
  require(
      !config || !other || config->lower_case == other->lower_case,
      "{}: tokenizer_config.json has do_lower_case {}, tokenizer.json has lowercase {}; correct "
      "one of them",
      folder.string(), config ? config->lower_case : false, other ? other->lower_case : false);
  return config ? config : other;
}

text::Casing casing_of(const TokenizerConfigFile& config, const std::string& place) {
  const bool usual = config.strip_accents.value_or(config.lower_case) == config.lower_case &&
                     config.tokenize_chinese_chars;
  require(usual,
          "{}: its tokenizer keeps accents while it lower-cases, strips them without lower-casing, "
          "or does not split Chinese characters (strip_accents, tokenize_chinese_chars): onebit's "
          "does not do that",
          place);
  return config.lower_case ? text::Casing::kUncased : text::Casing::kCased;
}

std::string tokenizer_config_text(const TokenizerConfigFile& config) {
  nlohmann::json json = {
      {"cls_token", config.cls_token},
      {"do_lower_case", config.lower_case},
      {"mask_token", config.mask_token},
      {"model_max_length", config.model_max_length},
      {"never_split", nullptr},
      {"pad_token", config.pad_token},
      {"sep_token", config.sep_token},
      {"strip_accents", nullptr},
      {"tokenize_chinese_chars", config.tokenize_chinese_chars},
      {"tokenizer_class", kTokenizerClasses[0]},
      {"unk_token", config.unk_token},
  };
  if (config.strip_accents) json["strip_accents"] = *config.strip_accents;
  return json_text(json, 2) + "\n";
}

std::string tokenizer_json_text(const std::vector<std::string>& vocabulary,
                                const TokenizerConfigFile& config) {
  const Json json = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens(vocabulary, config)},
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", true},
        {"handle_chinese_chars", config.tokenize_chinese_chars},
        {"strip_accents", config.strip_accents ? Json(*config.strip_accents) : Json()},
        {"lowercase", config.lower_case}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor", template_of(vocabulary, config)},
      {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", config.unk_token},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab", ids_of(vocabulary)}}}};
  return json_text(json, 2);
}

std::string special_tokens_map_text(const TokenizerConfigFile& config) {
  const nlohmann::json json = {
      {"cls_token", config.cls_token}, {"mask_token", config.mask_token},
      {"pad_token", config.pad_token}, {"sep_token", config.sep_token},
      {"unk_token", config.unk_token},
  };
  return json_text(json, 2) + "\n";
}

}  // namespace onebit::formats
