#include "onebit/data/tokenizer_files/pipeline_json.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "onebit/data/text/utf8.h"
#include "onebit/data/tokenizer_files/component_json.h"
#include "onebit/data/tokenizer_files/tokenizer_config.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

constexpr int64_t kLongestWord = 100;

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
    if (first.empty() || second.empty()) {
      fail("{}: key `model.merges[{}]` is {}; two tokens were expected", place, i, json_text(one));
    }
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
  result.vocabulary = vocabulary_of(member_of(model, "vocab"), place);
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
  const auto merges = merges_of(member_of(model, "merges"), place);
  try {
    text::BytePairs pairs(result.vocabulary, merges, options);
    if (!has_byte_symbols && pairs.cuts_before(kMetaspace, merges)) cuts_before = kMetaspace;
    return pairs;
  } catch (const Error& error) {
    fail("{}: key `model`: {}", place, error.what());
  }
}

text::WordPieces read_word_pieces(const Json& model, const std::string& place,
                                  PipelineJson& result) {
  JsonReader reader(settings_of(model), place, "model");
  reader.accept("type");
  result.vocabulary = vocabulary_of(member_of(model, "vocab"), place);
  result.unk_token = reader.text("unk_token", "[UNK]");
  const std::string prefix = reader.text("continuing_subword_prefix", "##");
  const int64_t most = reader.integer("max_input_chars_per_word", kLongestWord);
  const auto unknown_id = id_of(result.vocabulary, result.unk_token);
  require(unknown_id.has_value(), "{} is {}, which the vocabulary lacks", reader.place("unk_token"),
          quote(result.unk_token));
  require(!prefix.empty(), "{} is empty: a token could begin and continue words",
          reader.place("continuing_subword_prefix"));
  require(most >= 0, "{} is {}; it must be at least 0", reader.place("max_input_chars_per_word"),
          most);
  finish_tokenizer_file(reader);
  return {result.vocabulary,
          {.prefix = prefix, .most_characters = most, .unknown_id = *unknown_id}};
}

// A component that is a list of one is that one.
const Json& only_one_of(const Json& part, const char* list) {
  const Json* one = &part;
  while (one->is_object() && member_of(*one, "type") == "Sequence" &&
         member_of(*one, list).is_array() && member_of(*one, list).size() == 1) {
    one = &(*one)[list][0];
  }
  return *one;
}

// Whether a WordPiece model has BERT's rules, which have a faster way (tokenizer_json.h).
bool is_bert(const Json& json) {
  const Json& normalizer = only_one_of(member_of(json, "normalizer"), "normalizers");
  const Json& cuts = only_one_of(member_of(json, "pre_tokenizer"), "pretokenizers");
  const Json& model = member_of(json, "model");
  return normalizer.is_object() && member_of(normalizer, "type") == "BertNormalizer" &&
         normalizer.value("clean_text", Json(true)) == true && cuts.is_object() &&
         member_of(cuts, "type") == "BertPreTokenizer" &&
         model.value("continuing_subword_prefix", Json("##")) == "##" &&
         model.value("max_input_chars_per_word", Json(kLongestWord)) == kLongestWord;
}

text::Unigram read_unigram(const Json& model, const std::string& place, PipelineJson& result) {
  JsonReader reader(settings_of(model), place, "model");
  reader.accept("type");
  const Json& list = member_of(model, "vocab");
  require(list.is_array() && !list.empty(),
          "{}: key `model.vocab` is not a list of pieces and their scores", place);
  std::vector<double> scores;
  scores.reserve(list.size());
  result.vocabulary.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& one = list[i];
    const bool is_pair = one.is_array() && one.size() == 2 && one[0].is_string() &&
                         one[1].is_number() && std::isfinite(one[1].get<double>());
    if (!is_pair) {
      fail("{}: key `model.vocab[{}]` is {}; a piece and its score were expected", place, i,
           json_text(one));
    }
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
  for_each_component(json, place, "post_processor", "processors",
                     [&](const Json& part, const std::string&) {
                       const Json& type = member_of(part, "type");
                       if (type != "ByteLevel" && type != "RobertaProcessing") return;
                       if (!part.value("trim_offsets", true)) return;
                       rules.trims_offsets = true;
                       rules.adds_prefix_space = part.value("add_prefix_space", true);
                     });
}

// How tokens show where words begin. `mark` stands for a blank before a word, if any token of more
// characters has it. A model's own suffix and prefix are the marks where it has them.
void mark_words(const std::vector<std::string>& tokens, const std::string& mark, const Json& model,
                text::PipelineRules& rules) {
  const auto text_at = [&](const char* key, const char* usual) {
    const Json& given = member_of(model, key);
    return given.is_string() ? given.get<std::string>() : std::string(usual);
  };
  const bool is_word_piece = std::holds_alternative<text::WordPieces>(rules.model);
  if (std::holds_alternative<text::BytePairs>(rules.model)) {
    rules.word_end = text_at("end_of_word_suffix", "");
  }
  if (!rules.word_end.empty()) return;
  if (!std::holds_alternative<text::Unigram>(rules.model)) {
    rules.continuing_mark = text_at("continuing_subword_prefix", is_word_piece ? "##" : "");
  }
  if (!rules.continuing_mark.empty()) return;
  const bool is_used = std::ranges::any_of(tokens, [&](const std::string& token) {
    return token.size() > mark.size() && token.starts_with(mark);
  });
  if (is_used) rules.word_mark = mark;
}

// The checksum of the members that determine ids.
uint32_t checksum_of(const Json& json) {
  uint32_t checksum = 0;
  for (const char* key : {"normalizer", "pre_tokenizer", "model"}) {
    const std::string text = json_text(member_of(json, key));
    checksum = crc32c(text.data(), text.size(), checksum);
  }
  return checksum;
}

}  // namespace

std::vector<std::string> vocabulary_of(const Json& vocabulary, const std::string& place) {
  require(vocabulary.is_object() && !vocabulary.empty(),
          "{}: key `model.vocab` is not an object of tokens and their ids", place);
  // Programs that drop a repeated token leave its first id without a token.
  const uint64_t limit = 2 * uint64_t{vocabulary.size()} + 1024;
  std::vector<std::string> tokens;
  for (const auto& [token, id] : vocabulary.items()) {
    const bool is_id = id.is_number_unsigned();
    if (!is_id || id.get<uint64_t>() >= limit) {
      fail("{}: key `model.vocab.{}` is {}; {}", place, printable(token), json_text(id),
           !is_id ? "the token's id was expected"
                  : fmt::format("the vocabulary has {} tokens, whose ids are 0, 1, 2 and so on",
                                vocabulary.size()));
    }
    const auto at = id.get<size_t>();
    if (tokens.size() <= at) tokens.resize(at + 1);
    if (!tokens[at].empty()) {
      fail("{}: key `model.vocab.{}` is {}, which is the id of {} as well; correct one of them",
           place, printable(token), at, quote(tokens[at]));
    }
    tokens[at] = token;
  }
  return tokens;
}

bool has_pipeline(const Json& json) {
  const Json& model = json.is_object() ? member_of(json, "model") : json;
  if (!model.is_object()) return false;
  const Json& type = member_of(model, "type");
  return type == "BPE" || type == "Unigram" || (type == "WordPiece" && !is_bert(json)) ||
         (type.is_null() && (model.contains("merges") || member_of(model, "vocab").is_array()));
}

PipelineJson parse_pipeline(const Json& json, const std::string& place) {
  PipelineJson result;
  auto normalizer = read_normalizer(member_of(json, "normalizer"), place);
  auto pre_tokenizer = read_pre_tokenizer(member_of(json, "pre_tokenizer"), place);
  const bool has_byte_symbols = pre_tokenizer.has_byte_symbols();
  const Json& model = member_of(json, "model");
  std::string cuts_before;
  const auto rules = [&](auto subwords) {
    auto made = std::make_shared<text::PipelineRules>(
        text::PipelineRules{.normalizer = std::move(normalizer),
                            .pre_tokenizer = std::move(pre_tokenizer),
                            .model = std::move(subwords),
                            .cuts_before = cuts_before});
    mark_words(result.vocabulary, has_byte_symbols ? text::byte_symbol(' ') : kMetaspace, model,
               *made);
    read_trimming(member_of(json, "post_processor"), place, *made);
    made->checksum = checksum_of(json);
    return made;
  };
  const bool is_word_piece = member_of(model, "type") == "WordPiece";
  const bool is_unigram = !is_word_piece && (member_of(model, "type") == "Unigram" ||
                                             member_of(model, "vocab").is_array());
  require(
      !has_byte_symbols || (!is_word_piece && !is_unigram),
      "{}: key `pre_tokenizer` is ByteLevel before a {} model, which onebit's tokenizer does not "
      "have",
      place, is_unigram ? "Unigram" : "WordPiece");
  if (is_word_piece) {
    result.rules = rules(read_word_pieces(model, place, result));
  } else if (is_unigram) {
    result.rules = rules(read_unigram(model, place, result));
  } else {
    auto pairs = read_byte_pairs(model, place, has_byte_symbols, result, cuts_before);
    result.rules = rules(std::move(pairs));
  }
  return result;
}

}  // namespace onebit::formats
