#include "onebit/data/tokenizer_files/pipeline_json.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "onebit/data/text/utf8.h"
#include "onebit/data/tokenizer_files/tokenizer_config.h"
#include "onebit/ground/base/crc32c.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

using text::MetaspaceStep;
using text::SplitStep;

// The only regular expression among replacements: what sentencepiece does to blanks.
constexpr const char* kMetaspace = "\xE2\x96\x81";  // U+2581
constexpr const char* kRunsOfBlanks[] = {" {2,}", "[ ]{2,}", "  +"};

// A member of an object, or null. Vocabularies are large: they are not copied.
const Json& member(const Json& object, const char* key) {
  static const Json null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

// Calls on_part(part, path) for a component, or for each of a sequence.
template <typename OnPart>
void for_each_part(const Json& part, const std::string& place, const std::string& path,
                   const char* list, const OnPart& on_part) {
  if (part.is_null()) return;
  require(part.is_object() && member(part, "type").is_string(),
          "{}: key `{}` is not a component: an object with a type was expected", place, path);
  if (part["type"] != "Sequence") return on_part(part, path);
  const Json& parts = member(part, list);
  require(parts.is_array(), "{}: key `{}` is a Sequence without a list `{}`", place, path, list);
  for (size_t i = 0; i < parts.size(); ++i) {
    for_each_part(parts[i], place, fmt::format("{}.{}[{}]", path, list, i), list, on_part);
  }
}

[[noreturn]] void refuse_type(const std::string& type, const std::string& place,
                              const std::string& path, const char* known) {
  fail(
      "{}: key `{}` is {}, which onebit's tokenizer does not have, so the model's ids would "
      "differ; it has {}",
      place, path, quote(type), known);
}

std::shared_ptr<const text::CharacterMap> character_map(JsonReader& reader) {
  const std::string where = reader.place("precompiled_charsmap");
  try {
    return std::make_shared<const text::CharacterMap>(
        text::CharacterMap::from_base64(reader.text("precompiled_charsmap", "")));
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
}

// {"String": " "} or {"Regex": " {2,}"}
std::pair<std::string, bool> pattern_of(JsonReader& reader) {
  const Json& pattern = reader.raw("pattern");
  const bool is_one = pattern.is_object() && pattern.size() == 1;
  const Json text = is_one ? pattern.value("String", Json()) : Json();
  const Json regex = is_one ? pattern.value("Regex", Json()) : Json();
  require(text.is_string() || regex.is_string(), "{} is not a String or a Regex",
          reader.place("pattern"));
  require(!text.is_string() || !text.get<std::string>().empty(), "{} is an empty text",
          reader.place("pattern"));
  return {(text.is_string() ? text : regex).get<std::string>(), regex.is_string()};
}

text::ReplaceStep replace_of(JsonReader& reader) {
  const auto [pattern, is_regex] = pattern_of(reader);
  std::string content = reader.text("content", "");
  if (!is_regex) return {.pattern = pattern, .content = std::move(content)};
  const bool is_known = std::find(std::begin(kRunsOfBlanks), std::end(kRunsOfBlanks), pattern) !=
                        std::end(kRunsOfBlanks);
  require(is_known,
          "{} is the regular expression {}, which onebit's tokenizer does not have; it replaces "
          "texts, and blanks in a row (\" {{2,}}\")",
          reader.place("pattern"), quote(pattern));
  return {.pattern = std::string(1, ' '), .content = std::move(content), .is_run = true};
}

text::NormalizerStep normalizer_step(const std::string& type, JsonReader& reader,
                                     const std::string& place, const std::string& path) {
  if (type == "NFC") return text::UnicodeForm::kNfc;
  if (type == "NFD") return text::UnicodeForm::kNfd;
  if (type == "NFKC") return text::UnicodeForm::kNfkc;
  if (type == "NFKD") return text::UnicodeForm::kNfkd;
  if (type == "Lowercase") return text::LowerCaseStep{};
  if (type == "StripAccents") return text::StripAccentsStep{};
  if (type == "Strip") {
    return text::StripStep{.left = reader.boolean("strip_left", true),
                           .right = reader.boolean("strip_right", true)};
  }
  if (type == "Prepend") return text::PrependStep{reader.text("prepend", "")};
  if (type == "Replace") return replace_of(reader);
  if (type == "Precompiled") return text::CharacterMapStep{character_map(reader)};
  refuse_type(type, place, path,
              "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, "
              "Precompiled and Sequence");
}

text::Normalizer read_normalizer(const Json& json, const std::string& place) {
  std::vector<text::NormalizerStep> steps;
  for_each_part(json, place, "normalizer", "normalizers",
                [&](const Json& part, const std::string& path) {
                  JsonReader reader(part, place, path);
                  const std::string type = reader.text("type", "");
                  steps.push_back(normalizer_step(type, reader, place, path));
                  finish_tokenizer_file(reader);
                });
  return text::Normalizer(std::move(steps));
}

MetaspaceStep metaspace_of(JsonReader& reader) {
  MetaspaceStep step;
  step.replacement = reader.text("replacement", kMetaspace);
  require(!step.replacement.empty() &&
              text::decode_utf8(step.replacement).size_bytes == step.replacement.size(),
          "{} is {}; it must be one character", reader.place("replacement"),
          quote(step.replacement));
  const std::string scheme =
      reader.choice("prepend_scheme", "always", {"first", "never", "always"});
  step.prefix = scheme == "first"   ? MetaspaceStep::Prefix::kFirst
                : scheme == "never" ? MetaspaceStep::Prefix::kNever
                                    : MetaspaceStep::Prefix::kAlways;
  // Files of before 2024 have only this key.
  if (!reader.boolean("add_prefix_space", true)) {
    require(!reader.has("prepend_scheme") || step.prefix == MetaspaceStep::Prefix::kNever,
            "{} is false, and prepend_scheme is {}; make them agree",
            reader.place("add_prefix_space"), scheme);
    step.prefix = MetaspaceStep::Prefix::kNever;
  }
  step.cuts = reader.boolean("split", true);
  reader.accept("str_rep");
  return step;
}

SplitStep split_of(JsonReader& reader) {
  const auto [pattern, is_regex] = pattern_of(reader);
  require(!is_regex,
          "{} is the regular expression {}, which onebit's tokenizer does not have; it splits at "
          "texts, and ByteLevel is GPT-2's expression",
          reader.place("pattern"), quote(pattern));
  const std::vector<std::string> names = {"Removed", "Isolated", "MergedWithPrevious",
                                          "MergedWithNext", "Contiguous"};
  const std::string behavior = reader.choice("behavior", "Isolated", names);
  const auto at = std::find(names.begin(), names.end(), behavior) - names.begin();
  return {.pattern = pattern,
          .behavior = static_cast<SplitStep::Behavior>(at),
          .is_inverted = reader.boolean("invert", false)};
}

text::PreTokenizerStep pre_tokenizer_step(const std::string& type, JsonReader& reader,
                                          const std::string& place, const std::string& path) {
  if (type == "ByteLevel") {
    reader.accept("trim_offsets");  // of the post-processor
    return text::ByteLevelStep{.adds_prefix_space = reader.boolean("add_prefix_space", true),
                               .cuts = reader.boolean("use_regex", true)};
  }
  if (type == "Metaspace") return metaspace_of(reader);
  if (type == "WhitespaceSplit") return text::WhitespaceStep{};
  if (type == "Split") return split_of(reader);
  refuse_type(type, place, path, "ByteLevel, Metaspace, WhitespaceSplit, Split and Sequence");
}

text::PreTokenizer read_pre_tokenizer(const Json& json, const std::string& place) {
  std::vector<text::PreTokenizerStep> steps;
  for_each_part(json, place, "pre_tokenizer", "pretokenizers",
                [&](const Json& part, const std::string& path) {
                  require(
                      steps.empty() || !std::holds_alternative<text::ByteLevelStep>(steps.back()),
                      "{}: key `{}` follows ByteLevel, which onebit has only as the last step",
                      place, path);
                  JsonReader reader(part, place, path);
                  const std::string type = reader.text("type", "");
                  steps.push_back(pre_tokenizer_step(type, reader, place, path));
                  finish_tokenizer_file(reader);
                });
  return text::PreTokenizer(std::move(steps));
}

// {"the": 262, ...}
std::vector<std::string> vocabulary_of(const Json& vocabulary, const std::string& place) {
  require(vocabulary.is_object() && !vocabulary.empty(),
          "{}: key `model.vocab` is not an object of tokens and their ids", place);
  const uint64_t limit = 2 * uint64_t{vocabulary.size()} + 1024;
  std::vector<std::string> tokens;
  for (const auto& [token, id] : vocabulary.items()) {
    const bool is_id = id.is_number_unsigned() && id.get<uint64_t>() < limit;
    const size_t at = is_id ? id.get<size_t>() : 0;
    if (is_id && tokens.size() <= at) tokens.resize(at + 1);
    require(is_id && tokens[at].empty(),
            "{}: key `model.vocab`: the id of {} is not a number below {} of its own", place,
            quote(token), limit);
    tokens[at] = token;
  }
  return tokens;
}

// ["a b", ...] or [["a", "b"], ...]
std::vector<text::BytePairs::Merge> merges_of(const Json& list, const std::string& place) {
  require(list.is_array(), "{}: key `model.merges` is not a list", place);
  std::vector<text::BytePairs::Merge> merges;
  merges.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& one = list[i];
    std::string first, second;
    if (one.is_string()) {
      const std::string& pair = one.get_ref<const std::string&>();
      const size_t blank = pair.find(' ');
      if (blank != std::string::npos && pair.find(' ', blank + 1) == std::string::npos) {
        first = pair.substr(0, blank);
        second = pair.substr(blank + 1);
      }
    } else if (one.is_array() && one.size() == 2 && one[0].is_string() && one[1].is_string()) {
      first = one[0].get<std::string>();
      second = one[1].get<std::string>();
    }
    require(!first.empty() && !second.empty(),
            "{}: key `model.merges[{}]` is {}; two tokens were expected", place, i, json_text(one));
    merges.emplace_back(std::move(first), std::move(second));
  }
  return merges;
}

std::optional<int32_t> id_of(const std::vector<std::string>& tokens, const std::string& token) {
  const auto found = std::find(tokens.begin(), tokens.end(), token);
  if (found == tokens.end()) return std::nullopt;
  return static_cast<int32_t>(found - tokens.begin());
}

// A model's settings, without its lists.
Json settings_of(const Json& model) {
  Json settings = Json::object();
  for (const auto& [key, value] : model.items()) {
    if (key != "vocab" && key != "merges") settings[key] = value;
  }
  return settings;
}

text::BytePairs read_byte_pairs(const Json& model, const std::string& place, bool has_byte_symbols,
                                PipelineJson& result, std::string& cuts_before) {
  JsonReader reader(settings_of(model), place, "model");
  reader.accept("type");
  require(reader.number("dropout", 0) == 0, "{} is not 0; onebit's tokenizer drops no merges",
          reader.place("dropout"));
  result.vocabulary = vocabulary_of(member(model, "vocab"), place);
  result.unk_token = reader.text("unk_token", "");
  text::BytePairs::Options options{
      .has_byte_symbols = has_byte_symbols,
      .unknown_id = {},
      .fuses_unknown = reader.boolean("fuse_unk", false),
      .has_byte_fallback = reader.boolean("byte_fallback", false),
      .ignores_merges = reader.boolean("ignore_merges", false),
      .continuing_prefix = reader.text("continuing_subword_prefix", ""),
      .end_suffix = reader.text("end_of_word_suffix", "")};
  if (!result.unk_token.empty()) {
    options.unknown_id = id_of(result.vocabulary, result.unk_token);
    require(options.unknown_id.has_value(), "{} is {}, which the vocabulary lacks",
            reader.place("unk_token"), quote(result.unk_token));
  }
  finish_tokenizer_file(reader);
  const auto merges = merges_of(member(model, "merges"), place);
  try {
    text::BytePairs pairs(result.vocabulary, merges, options);
    if (!has_byte_symbols && pairs.cuts_before(kMetaspace, merges)) cuts_before = kMetaspace;
    return pairs;
  } catch (const Error& error) {
    fail("{}: key `model`: {}", place, error.what());
  }
}

text::Unigram read_unigram(const Json& model, const std::string& place, PipelineJson& result) {
  JsonReader reader(settings_of(model), place, "model");
  reader.accept("type");
  const Json& list = member(model, "vocab");
  require(list.is_array() && !list.empty(),
          "{}: key `model.vocab` is not a list of pieces and their scores", place);
  std::vector<double> scores;
  scores.reserve(list.size());
  result.vocabulary.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& one = list[i];
    const bool is_pair = one.is_array() && one.size() == 2 && one[0].is_string() &&
                         one[1].is_number() && std::isfinite(one[1].get<double>());
    require(is_pair, "{}: key `model.vocab[{}]` is {}; a piece and its score were expected", place,
            i, json_text(one));
    result.vocabulary.push_back(one[0].get<std::string>());
    scores.push_back(one[1].get<double>());
  }
  const Json& unknown = reader.raw("unk_id");
  require(unknown.is_number_unsigned() && unknown.get<uint64_t>() < list.size(),
          "{} is {}; it must be the id of a piece: without one a text with other characters has no "
          "ids",
          reader.place("unk_id"), json_text(unknown));
  const auto unknown_id = unknown.get<int32_t>();
  result.unk_token = result.vocabulary[static_cast<size_t>(unknown_id)];
  const text::Unigram::Options options{.unknown_id = unknown_id,
                                       .has_byte_fallback = reader.boolean("byte_fallback", false)};
  finish_tokenizer_file(reader);
  try {
    return text::Unigram(result.vocabulary, std::move(scores), options);
  } catch (const Error& error) {
    fail("{}: key `model.vocab`: {}", place, error.what());
  }
}

void read_trimming(const Json& json, const std::string& place, text::PipelineRules& rules) {
  for_each_part(json, place, "post_processor", "processors",
                [&](const Json& part, const std::string&) {
                  const Json& type = member(part, "type");
                  if (type != "ByteLevel" && type != "RobertaProcessing") return;
                  if (!part.value("trim_offsets", true)) return;
                  rules.trims_offsets = true;
                  rules.adds_prefix_space = part.value("add_prefix_space", true);
                });
}

// Of the members that decide on ids.
uint32_t checksum_of(const Json& json) {
  uint32_t checksum = 0;
  for (const char* key : {"normalizer", "pre_tokenizer", "model"}) {
    const std::string text = json_text(member(json, key));
    checksum = crc32c(text.data(), text.size(), checksum);
  }
  return checksum;
}

}  // namespace

bool has_pipeline(const Json& json) {
  const Json& model = json.is_object() ? member(json, "model") : json;
  if (!model.is_object()) return false;
  const Json& type = member(model, "type");
  return type == "BPE" || type == "Unigram" ||
         (type.is_null() && (model.contains("merges") || member(model, "vocab").is_array()));
}

PipelineJson parse_pipeline(const Json& json, const std::string& place) {
  PipelineJson result;
  auto normalizer = read_normalizer(member(json, "normalizer"), place);
  auto pre_tokenizer = read_pre_tokenizer(member(json, "pre_tokenizer"), place);
  const bool has_byte_symbols = pre_tokenizer.has_byte_symbols();
  const Json& model = member(json, "model");
  std::string cuts_before;
  const auto rules = [&](auto subwords) {
    auto made = std::make_shared<text::PipelineRules>(
        text::PipelineRules{.normalizer = std::move(normalizer),
                            .pre_tokenizer = std::move(pre_tokenizer),
                            .model = std::move(subwords),
                            .cuts_before = cuts_before,
                            .word_mark = has_byte_symbols ? text::byte_symbol(' ') : kMetaspace});
    read_trimming(member(json, "post_processor"), place, *made);
    made->checksum = checksum_of(json);
    return made;
  };
  if (member(model, "type") == "Unigram" || member(model, "vocab").is_array()) {
    require(!has_byte_symbols,
            "{}: key `pre_tokenizer` is ByteLevel before a Unigram model, which onebit's tokenizer "
            "does not have",
            place);
    result.rules = rules(read_unigram(model, place, result));
  } else {
    auto pairs = read_byte_pairs(model, place, has_byte_symbols, result, cuts_before);
    result.rules = rules(std::move(pairs));
  }
  return result;
}

}  // namespace onebit::formats
