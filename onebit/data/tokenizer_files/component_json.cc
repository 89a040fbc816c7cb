#include "onebit/data/tokenizer_files/component_json.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "onebit/data/text/utf8.h"
#include "onebit/data/tokenizer_files/tokenizer_config.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

using text::MetaspaceStep;
using text::SplitStep;

// The only regular expression among replacements: what sentencepiece does to blanks.
constexpr const char* kRunsOfBlanks[] = {" {2,}", "[ ]{2,}", "  +"};

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

// BERT's, step by step.
void add_bert_steps(JsonReader& reader, std::vector<text::NormalizerStep>& steps) {
  if (reader.boolean("clean_text", true)) steps.emplace_back(text::CleanTextStep{});
  if (reader.boolean("handle_chinese_chars", true)) steps.emplace_back(text::IdeographStep{});
  const bool lower_case = reader.boolean("lowercase", true);
  const bool is_said = !reader.raw("strip_accents").is_null();
  if (is_said ? reader.boolean("strip_accents", true) : lower_case) {
    steps.emplace_back(text::UnicodeForm::kNfd);
    steps.emplace_back(text::StripNonspacingStep{});
  }
  if (lower_case) steps.emplace_back(text::LowerCaseStep{});
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
              "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, BertNormalizer, Strip, Prepend, "
              "Replace, Precompiled and Sequence");
}

}  // namespace

text::Normalizer read_normalizer(const Json& json, const std::string& place) {
  std::vector<text::NormalizerStep> steps;
  for_each_component(json, place, "normalizer", "normalizers",
                     [&](const Json& part, const std::string& path) {
                       JsonReader reader(part, place, path);
                       const std::string type = reader.text("type", "");
                       if (type == "BertNormalizer") {
                         add_bert_steps(reader, steps);
                       } else {
                         steps.push_back(normalizer_step(type, reader, place, path));
                       }
                       finish_tokenizer_file(reader);
                     });
  return text::Normalizer(std::move(steps));
}

namespace {

std::string one_character(JsonReader& reader, const char* key, const std::string& usual) {
  std::string text = reader.text(key, usual);
  require(!text.empty() && text::decode_utf8(text).size_bytes == text.size(),
          "{} is {}; it must be one character", reader.place(key), quote(text));
  return text;
}

MetaspaceStep metaspace_of(JsonReader& reader) {
  MetaspaceStep step;
  step.replacement = one_character(reader, "replacement", kMetaspace);
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

SplitStep::Behavior behavior_of(JsonReader& reader) {
  const std::vector<std::string> names = {"Removed", "Isolated", "MergedWithPrevious",
                                          "MergedWithNext", "Contiguous"};
  const std::string behavior = reader.choice("behavior", "Isolated", names);
  const auto at = std::find(names.begin(), names.end(), behavior) - names.begin();
  return static_cast<SplitStep::Behavior>(at);
}

SplitStep split_of(JsonReader& reader) {
  const auto [pattern, is_regex] = pattern_of(reader);
  require(!is_regex,
          "{} is the regular expression {}, which onebit's tokenizer does not have; it splits at "
          "texts, and ByteLevel is GPT-2's expression",
          reader.place("pattern"), quote(pattern));
  return {.pattern = pattern,
          .behavior = behavior_of(reader),
          .is_inverted = reader.boolean("invert", false)};
}

text::PreTokenizerStep pre_tokenizer_step(const std::string& type, JsonReader& reader,
                                          const std::string& place, const std::string& path) {
  using text::CharacterSplitStep;
  if (type == "ByteLevel") {
    reader.accept("trim_offsets");  // of the post-processor
    return text::ByteLevelStep{.adds_prefix_space = reader.boolean("add_prefix_space", true),
                               .cuts = reader.boolean("use_regex", true)};
  }
  if (type == "Metaspace") return metaspace_of(reader);
  if (type == "WhitespaceSplit") return text::WhitespaceStep{};
  if (type == "Split") return split_of(reader);
  if (type == "Whitespace") return text::WordStep{};
  if (type == "Punctuation") {
    return CharacterSplitStep{CharacterSplitStep::Kind::kPunctuation, behavior_of(reader)};
  }
  if (type == "Digits") {
    const bool is_each = reader.boolean("individual_digits", false);
    return CharacterSplitStep{
        CharacterSplitStep::Kind::kDigit,
        is_each ? SplitStep::Behavior::kIsolated : SplitStep::Behavior::kContiguous};
  }
  refuse_type(type, place, path,
              "ByteLevel, Metaspace, BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, "
              "Digits, Split and Sequence");
}

}  // namespace

text::PreTokenizer read_pre_tokenizer(const Json& json, const std::string& place) {
  std::vector<text::PreTokenizerStep> steps;
  for_each_component(
      json, place, "pre_tokenizer", "pretokenizers",
      [&](const Json& part, const std::string& path) {
        require(steps.empty() || !std::holds_alternative<text::ByteLevelStep>(steps.back()),
                "{}: key `{}` follows ByteLevel, which onebit has only as the last step", place,
                path);
        JsonReader reader(part, place, path);
        const std::string type = reader.text("type", "");
        if (type == "BertPreTokenizer") {
          steps.emplace_back(text::WhitespaceStep{});
          steps.emplace_back(text::CharacterSplitStep{});
        } else {
          steps.push_back(pre_tokenizer_step(type, reader, place, path));
        }
        finish_tokenizer_file(reader);
      });
  return text::PreTokenizer(std::move(steps));
}

namespace {

text::MetaspaceDecoding metaspace_decoding_of(JsonReader& reader) {
  text::MetaspaceDecoding step{.replacement = one_character(reader, "replacement", kMetaspace)};
  const std::string scheme =
      reader.choice("prepend_scheme", "always", {"first", "never", "always"});
  step.drops_first = scheme != "never" && reader.boolean("add_prefix_space", true);
  reader.boolean("split", true);
  reader.accept("str_rep");
  return step;
}

std::string replaced_text(JsonReader& reader) {
  const Json& pattern = reader.raw("pattern");
  require(pattern.is_object() && pattern.size() == 1 && member_of(pattern, "String").is_string(),
          "{} is not a String; onebit's decoder replaces texts alone", reader.place("pattern"));
  return pattern["String"].get<std::string>();
}

text::DecoderStep step_of(const std::string& type, JsonReader& reader, const std::string& place,
                          const std::string& path) {
  if (type == "WordPiece") {
    return text::WordPieceDecoding{.prefix = reader.text("prefix", "##"),
                                   .cleans = reader.boolean("cleanup", true)};
  }
  if (type == "ByteLevel") {
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) reader.accept(key);
    return text::ByteLevelDecoding{};
  }
  if (type == "Metaspace") return metaspace_decoding_of(reader);
  if (type == "BPEDecoder") return text::SuffixDecoding{reader.text("suffix", "</w>")};
  if (type == "Replace") {
    std::string pattern = replaced_text(reader);
    return text::ReplaceDecoding{std::move(pattern), reader.text("content", "")};
  }
  if (type == "Fuse") return text::FuseDecoding{};
  if (type == "Strip") {
    return text::StripDecoding{.content = one_character(reader, "content", " "),
                               .start = reader.integer("start", 0),
                               .stop = reader.integer("stop", 0)};
  }
  if (type == "ByteFallback") return text::ByteFallbackDecoding{};
  fail(
      "{}: key `{}` is {}, which onebit's decoder does not have; it has WordPiece, ByteLevel, "
      "Metaspace, BPEDecoder, Replace, Fuse, Strip, ByteFallback and Sequence",
      place, path, quote(type));
}

}  // namespace

text::Decoder read_decoder(const Json& json, const std::string& place) {
  std::vector<text::DecoderStep> steps;
  try {
    for_each_component(json, place, "decoder", "decoders",
                       [&](const Json& part, const std::string& path) {
                         JsonReader reader(part, place, path);
                         const std::string type = reader.text("type", "");
                         steps.push_back(step_of(type, reader, place, path));
                         reader.finish();
                       });
  } catch (const Error& error) {
    return text::Decoder::refused(error.what(), json_text(json));
  }
  return {std::move(steps), json_text(json)};
}

Json decoder_json(const text::Decoder& decoder) {
  if (!decoder.source().empty()) return Json::parse(decoder.source());
  const text::WordPieceDecoding berts;
  return {{"type", "WordPiece"}, {"prefix", berts.prefix}, {"cleanup", berts.cleans}};
}

}  // namespace onebit::formats
