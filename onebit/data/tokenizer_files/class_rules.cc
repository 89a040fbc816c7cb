#include "onebit/data/tokenizer_files/class_rules.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"

namespace onebit::formats {
namespace {

constexpr const char* kNormalizer = "normalizer";
constexpr const char* kPreTokenizer = "pre_tokenizer";

std::string without_fast(std::string name) {
  constexpr std::string_view kFast = "Fast";
  if (name.ends_with(kFast)) name.resize(name.size() - kFast.size());
  return name;
}

Json member(const Json& object, const char* key) {
  return object.is_object() ? object.value(key, Json()) : Json();
}

// The parts of a Sequence, or the part itself, in this form: what is absent has its default, and
// what changes no id is left out.
std::vector<Json> parts_of(const Json& component) {
  std::vector<Json> parts;
  if (!component.is_object()) return parts;
  if (member(component, "type") == "Sequence") {
    for (const char* list : {"normalizers", "pretokenizers"}) {
      for (const Json& one : member(component, list)) {
        for (Json& part : parts_of(one)) parts.push_back(std::move(part));
      }
    }
    return parts;
  }
  const Json type = member(component, "type");
  if (type == "Metaspace") {
    const Json scheme = member(component, "prepend_scheme");
    const bool prepends = component.value("add_prefix_space", Json(true)) == true;
    parts.push_back(
        {{"type", type},
         {"replacement", member(component, "replacement")},
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
  const std::vector<Json> parts = parts_of(member(tokenizer, kNormalizer));
  const auto found = std::ranges::find_if(
      parts, [](const Json& part) { return member(part, "type") == "Precompiled"; });
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
};

std::optional<Rules> rules_of(const TokenizerConfigMembers& members, const Json& tokenizer) {
  const std::string name = without_fast(members.tokenizer_class);
  if (name == "RobertaTokenizer" || name == "LongformerTokenizer" || name == "GPT2Tokenizer") {
    return Rules{"BPE",
                 Json(),
                 {{"type", "ByteLevel"},
                  {"add_prefix_space", members.add_prefix_space.value_or(false)},
                  {"trim_offsets", true},
                  {"use_regex", true}}};
  }
  if (name == "GemmaTokenizer") {
    return Rules{"BPE",
                 replace(" ", "▁"),
                 {{"type", "Split"},
                  {"pattern", {{"String", " "}}},
                  {"behavior", "MergedWithPrevious"},
                  {"invert", false}}};
  }
  if (name == "XLMRobertaTokenizer" || name == "CamembertTokenizer") {
    return Rules{"Unigram", sequence("normalizers", compiled_map(tokenizer)),
                 words_with_marks(members)};
  }
  if (name != "AlbertTokenizer") return std::nullopt;
  Json steps = {replace("``", "\""), replace("''", "\"")};
  if (!members.keep_accents.value_or(false)) {
    steps.push_back({{"type", "NFKD"}});
    steps.push_back({{"type", "StripAccents"}});
  }
  if (members.lower_case.value_or(true)) steps.push_back({{"type", "Lowercase"}});
  for (const Json& map : compiled_map(tokenizer)) steps.push_back(map);
  return Rules{"Unigram", sequence("normalizers", std::move(steps)), words_with_marks(members)};
}

// The type of the model beside the file. Empty: there is none.
std::string model_type_beside(const Path& file) {
  const Path config = file.parent_path() / "config.json";
  if (!std::filesystem::exists(config)) return "";
  const Json type = member(read_json(config), "model_type");
  return type.is_string() ? type.get<std::string>() : "";
}

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

Json with_class_rules(Json tokenizer, const std::optional<TokenizerConfigMembers>& members,
                      const std::string& place) {
  if (!members) return tokenizer;
  const std::optional<Rules> rules = rules_of(*members, tokenizer);
  if (!rules || member(member(tokenizer, "model"), "type") != rules->model) return tokenizer;
  if (takes_file_alone(model_type_beside(place))) return tokenizer;
  std::string replaced;
  for (const auto& [key, made] :
       {std::pair(kNormalizer, &rules->normalizer), {kPreTokenizer, &rules->pre_tokenizer}}) {
    const std::vector<Json> parts = parts_of(*made);
    if (parts_of(member(tokenizer, key)) == parts) continue;
    tokenizer[key] = parts.empty() ? Json() : *made;
    replaced += (replaced.empty() ? "" : " and ") + std::string(key);
  }
  if (!replaced.empty()) {
    log_info(
        "{}: {}: not the file's but that of the class {}, as in transformers 5; write "
        "PreTrainedTokenizerFast as tokenizer_class to use the file's",
        place, replaced, members->tokenizer_class);
  }
  return tokenizer;
}

// transformers' classes take both settings from tokenizer_config.json alone, and programs that read
// tokenizer.json alone would find other words.
void check_word_piece_rules(const TokenizerConfigMembers& members, const TokenizerJson& json,
                            const std::string& config_place) {
  const bool has_rules = members.is_bert || members.tokenizer_class.starts_with("MPNetTokenizer");
  if (!has_rules) return;
  require(members.lower_case || json.lower_case || has_no_rules(members.tokenizer_class),
          "{}: has no do_lower_case, so that text is lower-cased in transformers, and "
          "tokenizer.json has lowercase false; write the key into {}",
          config_place, kTokenizerConfigJson);
  if (members.strip_accents || !json.strip_accents) return;
  require(
      *json.strip_accents == json.lower_case,
      "{}: has no strip_accents, so that accents are {} in transformers, and tokenizer.json has "
      "strip_accents {}; write the key into {}",
      config_place, json.lower_case ? "stripped" : "kept", *json.strip_accents,
      kTokenizerConfigJson);
}

}  // namespace onebit::formats
