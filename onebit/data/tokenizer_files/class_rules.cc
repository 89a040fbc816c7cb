#include "onebit/data/tokenizer_files/class_rules.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/data/tokenizer_files/component_json.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

constexpr const char* kNormalizer = "normalizer";
constexpr const char* kPreTokenizer = "pre_tokenizer";

std::string without_fast(std::string name) {
  constexpr std::string_view kFast = "Fast";
  if (name.ends_with(kFast)) name.resize(name.size() - kFast.size());
  return name;
}

// The parts of a Sequence, or the part itself, in this form: what is absent has its default, and
// what changes no id is left out.
std::vector<Json> parts_of(const Json& component) {
  std::vector<Json> parts;
  if (!component.is_object()) return parts;
  if (member_of(component, "type") == "Sequence") {
    for (const char* list : {"normalizers", "pretokenizers"}) {
      for (const Json& one : member_of(component, list)) {
        for (Json& part : parts_of(one)) parts.push_back(std::move(part));
      }
    }
    return parts;
  }
  const Json type = member_of(component, "type");
  if (type == "Metaspace") {
    const Json scheme = member_of(component, "prepend_scheme");
    const bool prepends = component.value("add_prefix_space", Json(true)) == true;
    parts.push_back(
        {{"type", type},
         {"replacement", member_of(component, "replacement")},
         {"prepend_scheme", scheme.is_null() ? Json(prepends ? "always" : "never") : scheme},
         {"split", component.value("split", Json(true))}});
  } else if (type == "ByteLevel") {
    parts.push_back({{"type", type},
                     {"add_prefix_space", component.value("add_prefix_space", Json(true))},
                     {"use_regex", component.value("use_regex", Json(true))}});
  } else {
    parts.push_back(component);
  }
  return parts;
}

Json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Json sequence(const char* list, Json parts) {
  return {{"type", "Sequence"}, {list, std::move(parts)}};
}

// The compiled map of SentencePiece in the file's normaliser, or nothing.
Json compiled_map(const Json& tokenizer) {
  const std::vector<Json> parts = parts_of(member_of(tokenizer, kNormalizer));
  const auto found = std::ranges::find_if(
      parts, [](const Json& part) { return member_of(part, "type") == "Precompiled"; });
  return found == parts.end() ? Json::array() : Json::array({*found});
}

Json words_with_marks(const TokenizerConfigMembers& members) {
  const bool prepends = members.add_prefix_space.value_or(true);
  return sequence("pretokenizers", {{{"type", "WhitespaceSplit"}},
                                    {{"type", "Metaspace"},
                                     {"replacement", "▁"},
                                     {"prepend_scheme", prepends ? "always" : "never"},
                                     {"split", true}}});
}

struct Rules {
  const char* model;  // the type of the models that the class has
  Json normalizer, pre_tokenizer;
  Json settings;  // of the model, whatever the file says
};

Json byte_pair_settings() {
  return {{"continuing_subword_prefix", ""},
          {"end_of_word_suffix", ""},
          {"fuse_unk", false},
          {"unk_token", nullptr},
          {"byte_fallback", false},
          {"ignore_merges", false}};
}

// What a member of the name would say, or nothing: an absent text is empty, an absent switch off.
bool is_same_setting(const Json& a, const Json& b) {
  const auto says_nothing = [](const Json& value) {
    return value.is_null() || value == Json("") || value == false;
  };
  return a == b || (says_nothing(a) && says_nothing(b));
}

std::string unknown_token(const TokenizerConfigMembers& members) {
  const auto named = members.specials.roles.find("unk_token");
  return named == members.specials.roles.end() ? "<unk>" : named->second.content;
}

// CamemBERT's unknown piece is the first one of that name.
uint64_t first_piece(const Json& tokenizer, const std::string& name) {
  const Json& pieces = member_of(member_of(tokenizer, "model"), "vocab");
  for (size_t i = 0; pieces.is_array() && i < pieces.size(); ++i) {
    if (pieces[i].is_array() && !pieces[i].empty() && pieces[i][0] == name) {
      return i;
    }
  }
  return 0;
}

// The id of the unknown piece is fixed in the classes of XLM-R and ALBERT.
Json unigram_settings(uint64_t unknown_id) {
  return {{"unk_id", unknown_id}, {"byte_fallback", false}};
}

std::optional<Rules> rules_of(const TokenizerConfigMembers& members, const Json& tokenizer) {
  const std::string name = without_fast(members.tokenizer_class);
  if (name == "RobertaTokenizer" || name == "LongformerTokenizer" || name == "GPT2Tokenizer") {
    return Rules{"BPE",
                 Json(),
                 {{"type", "ByteLevel"},
                  {"add_prefix_space", members.add_prefix_space.value_or(false)},
                  {"trim_offsets", true},
                  {"use_regex", true}},
                 byte_pair_settings()};
  }
  if (name == "GemmaTokenizer") {
    Json settings = byte_pair_settings();
    settings.update(
        {{"fuse_unk", true}, {"unk_token", unknown_token(members)}, {"byte_fallback", true}});
    return Rules{"BPE",
                 replace(" ", "▁"),
                 {{"type", "Split"},
                  {"pattern", {{"String", " "}}},
                  {"behavior", "MergedWithPrevious"},
                  {"invert", false}},
                 std::move(settings)};
  }
  if (name == "XLMRobertaTokenizer" || name == "CamembertTokenizer") {
    constexpr uint64_t kOfXlmRoberta = 3;
    const bool is_fixed = name == "XLMRobertaTokenizer";
    return Rules{"Unigram", sequence("normalizers", compiled_map(tokenizer)),
                 words_with_marks(members),
                 unigram_settings(is_fixed ? kOfXlmRoberta
                                           : first_piece(tokenizer, unknown_token(members)))};
  }
  if (name != "AlbertTokenizer") return std::nullopt;
  Json steps = {replace("``", "\""), replace("''", "\"")};
  if (!members.keep_accents.value_or(false)) {
    steps.push_back({{"type", "NFKD"}});
    steps.push_back({{"type", "StripAccents"}});
  }
  if (members.lower_case.value_or(true)) steps.push_back({{"type", "Lowercase"}});
  for (const Json& map : compiled_map(tokenizer)) steps.push_back(map);
  constexpr uint64_t kOfAlbert = 1;
  return Rules{"Unigram", sequence("normalizers", std::move(steps)), words_with_marks(members),
               unigram_settings(kOfAlbert)};
}

// A text of the config.json in `folder`. Empty: there is none.
std::string model_member(const Path& folder, const char* key) {
  const Path config = folder / "config.json";
  if (!std::filesystem::exists(config)) return "";
  const Json json = read_json(config);
  const Json& value = member_of(json, key);
  return value.is_string() ? value.get<std::string>() : "";
}

// TOKENIZER_MAPPING_NAMES of transformers 5.24, for encoders.
struct TypeClass {
  std::string_view model_type, tokenizer_class;
};
constexpr TypeClass kTypeClasses[] = {
    {"albert", "AlbertTokenizer"},
    {"bert", "BertTokenizer"},
    {"camembert", "CamembertTokenizer"},
    {"convbert", "BertTokenizer"},
    {"data2vec-text", "RobertaTokenizer"},
    {"distilbert", "BertTokenizer"},
    {"electra", "BertTokenizer"},
    {"ernie", "BertTokenizer"},
    {"gte", "XLMRobertaTokenizer"},
    {"ibert", "RobertaTokenizer"},
    {"longformer", "RobertaTokenizer"},
    {"megatron-bert", "BertTokenizer"},
    {"mobilebert", "MobileBertTokenizer"},
    {"modernbert", "TokenizersBackend"},
    {"mpnet", "MPNetTokenizer"},
    {"nomic_bert", "BertTokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"roberta-prelayernorm", "RobertaTokenizer"},
    {"squeezebert", "BertTokenizer"},
    {"xlm-roberta", "XLMRobertaTokenizer"},
    {"xlm-roberta-xl", "TokenizersBackend"},
    {"xmod", "XLMRobertaTokenizer"},
};

// Models for which transformers loads the file alone, whatever the class is.
bool takes_file_alone(const std::string& model_type) {
  return model_type == "modernbert" || model_type == "modernbert-decoder" ||
         model_type == "xlm-roberta-xl";
}

// Whether the class is built from the file alone, or is unknown to transformers 5.
bool has_no_rules(const std::string& tokenizer_class) {
  const std::string name = without_fast(tokenizer_class);
  return name == "ConvBertTokenizer" || name == "RetriBertTokenizer";
}

}  // namespace

std::string implied_class(const Path& folder, const Json& tokenizer) {
  std::string named = model_member(folder, "tokenizer_class");
  if (!named.empty()) return named;
  const std::string type = model_member(folder, "model_type");
  const auto* found = std::ranges::find(kTypeClasses, type, &TypeClass::model_type);
  if (found == std::end(kTypeClasses)) return "";
  std::string implied(found->tokenizer_class);
  const std::optional<Rules> rules = rules_of({.tokenizer_class = implied}, tokenizer);
  // transformers does not load another model with a class of byte pairs or of a unigram model.
  if (rules && member_of(member_of(tokenizer, "model"), "type") != rules->model) return "";
  return implied;
}

Json with_class_rules(const Path& folder, Json tokenizer,
                      const std::optional<TokenizerConfigMembers>& members,
                      const std::string& place) {
  if (!members) return tokenizer;
  const std::optional<Rules> rules = rules_of(*members, tokenizer);
  if (!rules || member_of(member_of(tokenizer, "model"), "type") != rules->model) return tokenizer;
  if (takes_file_alone(model_member(folder, "model_type"))) return tokenizer;
  std::string replaced;
  const auto note = [&](const std::string& key) {
    replaced += (replaced.empty() ? "" : " and ") + key;
  };
  for (const auto& [key, made] :
       {std::pair(kNormalizer, &rules->normalizer), {kPreTokenizer, &rules->pre_tokenizer}}) {
    const std::vector<Json> parts = parts_of(*made);
    if (parts_of(member_of(tokenizer, key)) == parts) continue;
    tokenizer[key] = parts.empty() ? Json() : *made;
    note(key);
  }
  for (const auto& [key, value] : rules->settings.items()) {
    if (is_same_setting(member_of(tokenizer["model"], key.c_str()), value)) continue;
    tokenizer["model"][key] = value;
    note("model." + key);
  }
  if (!replaced.empty()) {
    log_info(
        "{}: {}: not the file's but that of the class {}, as in transformers 5; write "
        "PreTrainedTokenizerFast as tokenizer_class into {} to use the file's",
        place, replaced, members->tokenizer_class, kTokenizerConfigJson);
  }
  return tokenizer;
}

namespace {

// MPNet's classes make BERT's normalizer and pre-tokenizer themselves, too.
bool has_word_piece_rules(const TokenizerConfigMembers& members) {
  return members.is_bert || members.tokenizer_class.starts_with("MPNetTokenizer");
}

}  // namespace

// transformers' classes take both settings from tokenizer_config.json alone, and programs that read
// tokenizer.json alone would find other words.
void check_word_piece_rules(const TokenizerConfigMembers& members, const TokenizerJson& json,
                            const std::string& config_place) {
  if (!has_word_piece_rules(members)) {
    const bool strips = json.strip_accents.value_or(json.lower_case);
    require(members.strip_accents.value_or(strips) == strips,
            "{}: has strip_accents {}, tokenizer.json has {}, and {} of transformers obeys "
            "tokenizer.json; correct one of them",
            config_place, !strips, strips, members.tokenizer_class);
    const bool splits = json.handle_chinese_chars;
    require(members.tokenize_chinese_chars.value_or(splits) == splits,
            "{}: has tokenize_chinese_chars {}, tokenizer.json has handle_chinese_chars {}, and {} "
            "of transformers obeys tokenizer.json; correct one of them",
            config_place, !splits, splits, members.tokenizer_class);
    return;
  }
  require(
      members.lower_case || json.lower_case || has_no_rules(members.tokenizer_class),
      "{}: has no do_lower_case, so that text is lower-cased in transformers, and "
      "tokenizer.json has lowercase false; if the file is right, write \"do_lower_case\": false "
      "into {}",
      config_place, kTokenizerConfigJson);
  if (members.strip_accents || !json.strip_accents) return;
  require(
      *json.strip_accents == json.lower_case,
      "{}: has no strip_accents, so that accents are {} in transformers, and tokenizer.json has "
      "strip_accents {}; if the file is right, write \"strip_accents\": {} into {}",
      config_place, json.lower_case ? "stripped" : "kept", *json.strip_accents, *json.strip_accents,
      kTokenizerConfigJson);
}

void check_word_piece_class(const std::optional<TokenizerConfigMembers>& members,
                            const std::string& place) {
  require(
      !members || !members->is_pipeline,
      "{}: its model is WordPiece, and key `tokenizer_class` of {} is {}, a class of byte pairs "
      "or of a unigram model; write BertTokenizer there if the rules are BERT's, or "
      "PreTrainedTokenizerFast",
      place, kTokenizerConfigJson, members ? quote(members->tokenizer_class) : "");
  require(!members || !members->add_prefix_space.value_or(false),
          "{}: key `add_prefix_space` is true; a WordPiece tokenizer adds nothing to the text",
          place);
}

// transformers' classes change the rules of their tokenizer.json by some members.
void check_pipeline_class(const std::optional<TokenizerConfigMembers>& members,
                          const TokenizerJson& json, const Path& combined) {
  require(
      !members || !has_word_piece_rules(*members),
      "{}: its rules are not BERT's WordPiece, and key `tokenizer_class` of {} is {}, a class that "
      "has only BERT's rules; write PreTrainedTokenizerFast there if the file is the model's, or "
      "take the model's own tokenizer.json",
      combined.string(), kTokenizerConfigJson, members ? quote(members->tokenizer_class) : "");
  if (!members || !members->add_prefix_space) return;
  const bool said = *members->add_prefix_space;
  const bool does = json.pipeline->pre_tokenizer.adds_prefix_space().value_or(said);
  require(said == does,
          "{}: key `add_prefix_space` is {}, and the pre_tokenizer of {} has {}; make them agree",
          kTokenizerConfigJson, said, combined.string(), does);
}

}  // namespace onebit::formats
