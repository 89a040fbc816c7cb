#include "onebit/data/tokenizer_files/tokenizer_json.h"

#include <algorithm>
#include <set>
#include <utility>

#include "onebit/data/text/vocabulary.h"
#include "onebit/data/tokenizer_files/component_json.h"
#include "onebit/data/tokenizer_files/pipeline_json.h"
#include "onebit/data/tokenizer_files/tokenizer_config.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

constexpr const char* kWordPiecePrefix = "##";
constexpr int64_t kLongestWord = 100;

// An object without its largest member, for a reader, which copies it. The member is a known one.
JsonReader reader_without(const Json& object, const char* member, const std::string& place,
                          const std::string& path) {
  Json rest = Json::object();
  for (const auto& [key, value] : object.items()) {
    if (key != member) rest[key] = value;
  }
  JsonReader reader(rest, place, path);
  reader.accept(member);
  return reader;
}

// A list of one stands for that one.
const Json& only_one_of(const Json& part, const char* kind, const char* list) {
  const Json* one = &part;
  while (one->is_object() && one->value("type", "") == kind && one->contains(list) &&
         (*one)[list].is_array() && (*one)[list].size() == 1) {
    one = &(*one)[list][0];
  }
  return *one;
}

std::string type_of(const Json& part) {
  if (part.is_null()) return "none";
  if (!part.is_object()) return "not an object";
  const Json type = part.value("type", Json());
  if (!type.is_string()) return "no type";
  const Json list = part.value("normalizers", part.value("pretokenizers", Json()));
  if (!list.is_array()) return type.get<std::string>();
  std::string types;
  for (const Json& one : list) types += (types.empty() ? "" : ", ") + type_of(one);
  return fmt::format("{} of {}", type.get<std::string>(), types);
}

void require_type(const Json& part, const char* type, const std::string& place, const char* key) {
  require(part.is_object() && part.value("type", Json()) == type,
          "{}: key `{}` is {}; onebit's tokenizer has {}, so the model's ids would differ", place,
          key, type_of(part), type);
}

void read_normalizer(const Json& json, const std::string& place, TokenizerJson& tokenizer) {
  const Json& part = only_one_of(json, "Sequence", "normalizers");
  require_type(part, "BertNormalizer", place, "normalizer");
  JsonReader reader(part, place, "normalizer");
  reader.accept("type");
  require(reader.boolean("clean_text", true),
          "{} is false; onebit's tokenizer always removes control characters",
          reader.place("clean_text"));
  tokenizer.handle_chinese_chars = reader.boolean("handle_chinese_chars", true);
  tokenizer.lower_case = reader.boolean("lowercase", true);
  if (!reader.raw("strip_accents").is_null()) {
    tokenizer.strip_accents = reader.boolean("strip_accents", true);
  }
  reader.finish();
}

void read_model(const Json& model, const std::string& place, TokenizerJson& tokenizer) {
  require(model.is_object(), "{}: key `model` is not an object", place);
  JsonReader reader = reader_without(model, "vocab", place, "model");
  reader.choice("type", "WordPiece", {"WordPiece"});
  tokenizer.unk_token = reader.text("unk_token", tokenizer.unk_token);
  const std::string prefix = reader.text("continuing_subword_prefix", kWordPiecePrefix);
  require(prefix == kWordPiecePrefix, "{} is {}; onebit's tokenizer has {}",
          reader.place("continuing_subword_prefix"), quote(prefix), kWordPiecePrefix);
  const int64_t longest = reader.integer("max_input_chars_per_word", kLongestWord);
  require(longest == kLongestWord, "{} is {}; onebit's tokenizer has {}",
          reader.place("max_input_chars_per_word"), longest, kLongestWord);
  tokenizer.vocabulary = vocabulary_of(member_of(model, "vocab"), place);
  reader.finish();
}

void read_added_tokens(const Json& list, const std::string& place, TokenizerJson& tokenizer) {
  if (list.is_null()) return;
  require(list.is_array(), "{}: key `added_tokens` is not a list", place);
  for (size_t i = 0; i < list.size(); ++i) {
    require(list[i].is_object(), "{}: key `added_tokens[{}]` is not an object", place, i);
    JsonReader reader(list[i], place, fmt::format("added_tokens[{}]", i));
    const int64_t id = reader.integer("id", -1);
    require(id >= 0 && id <= INT32_MAX, "{} is {}; it must be a token's id", reader.place("id"),
            id);
    text::AddedToken token = text::read_added_token(reader);
    token.id = static_cast<int32_t>(id);
    tokenizer.added.push_back(std::move(token));
  }
}

// [CLS] A [SEP], or [CLS] A [SEP] B [SEP] (RoBERTa: two [SEP] before B).
std::pair<Json, Json> templates_of(const std::string& cls, const std::string& sep,
                                   const text::PairTemplate& pair_template) {
  const auto token = [](const std::string& text, int segment) -> Json {
    return {{"SpecialToken", {{"id", text}, {"type_id", segment}}}};
  };
  const auto sequence = [](const char* name, int segment) -> Json {
    return {{"Sequence", {{"id", name}, {"type_id", segment}}}};
  };
  const Json first = {token(cls, 0), sequence("A", 0), token(sep, 0)};
  const int second = pair_template.second_segment;
  Json pair = first;
  for (int i = 1; i < pair_template.separators; ++i) pair.push_back(token(sep, 0));
  pair.push_back(sequence("B", second));
  pair.push_back(token(sep, second));
  return {first, pair};
}

constexpr text::PairTemplate kPairTemplates[] = {{1, 1}, {2, 0}, {1, 0}, {2, 1}};

bool is_same(const Json& a, const Json& b) {
  return nlohmann::json(a) == nlohmann::json(b);  // in any order of keys
}

// The id that `tokenizers` gives a token.
std::optional<int64_t> id_of(const std::string& content, const std::vector<std::string>& vocabulary,
                             const std::vector<text::AddedToken>& added) {
  for (const text::AddedToken& token : added) {
    if (token.content == content) return token.id;
  }
  const auto found = std::find(vocabulary.rbegin(), vocabulary.rend(), content);
  if (found == vocabulary.rend()) return std::nullopt;
  return vocabulary.rend() - found - 1;
}

// A file without a type is one of the first versions of `tokenizers`.
void require_known_model(const Json& model, const std::string& place) {
  require(model.is_object(),
          "{}: key `model` is not an object, so it is not a tokenizer.json, which the folder of a "
          "model or of a tokenizer contains",
          place);
  const Json& type = member_of(model, "type");
  require(
      type.is_null() || type == "WordPiece" || type == "BPE" || type == "Unigram",
      "{}: key `model.type` is {}, which onebit's tokenizer does not have; it has WordPiece, BPE "
      "and Unigram",
      place, json_text(type));
}

// The text of a template's first and third entry.
std::string special_at(const Json& single, size_t index) {
  if (!single.is_array() || index >= single.size() || !single[index].is_object()) return "";
  const Json token = single[index].value("SpecialToken", Json::object());
  const Json id = token.is_object() ? token.value("id", Json()) : Json();
  return id.is_string() ? id.get<std::string>() : "";
}

// ["[SEP]", 102]
std::string first_text(const Json& pair) {
  return pair.is_array() && !pair.empty() && pair[0].is_string() ? pair[0].get<std::string>() : "";
}

// Programs put this id around a text, whatever the vocabulary has.
void require_own_id(const std::string& token, const Json& id, const std::string& place,
                    const TokenizerJson& tokenizer) {
  const auto own = id_of(token, tokenizer.vocabulary, tokenizer.added);
  require(own && id.is_number_integer() && id == *own,
          "{}: key `post_processor` gives {} the id {}, the vocabulary has {}; make them agree",
          place, quote(token), json_text(id), own ? std::to_string(*own) : "no such token");
}

void read_bert_processing(JsonReader& reader, const std::string& place, TokenizerJson& tokenizer) {
  const auto token = [&](const char* key) {
    const Json& pair = reader.raw(key);
    const std::string text = first_text(pair);
    require_own_id(text, pair.is_array() && pair.size() == 2 ? pair[1] : Json(), place, tokenizer);
    return text;
  };
  tokenizer.cls_token = token("cls");
  tokenizer.sep_token = token("sep");
}

void read_template(JsonReader& reader, const std::string& place, TokenizerJson& tokenizer) {
  const Json &single = reader.raw("single"), &pair = reader.raw("pair");
  tokenizer.cls_token = special_at(single, 0);
  tokenizer.sep_token = special_at(single, 2);
  bool is_known = false;
  for (const text::PairTemplate& known : kPairTemplates) {
    const auto [wanted, wanted_pair] =
        templates_of(*tokenizer.cls_token, *tokenizer.sep_token, known);
    is_known = is_same(single, wanted) && (pair.is_null() || is_same(pair, wanted_pair));
    if (is_known) tokenizer.pair = known;
    if (is_known) break;
  }
  require(is_known,
          "{}: key `post_processor` is another template than [CLS] A [SEP] and [CLS] A [SEP] B "
          "[SEP], with one or two [SEP] before B and the segments 0 and 1, or 0 alone",
          place);
  const Json& specials = reader.raw("special_tokens");
  for (const std::string& text : {*tokenizer.cls_token, *tokenizer.sep_token}) {
    const Json special = specials.is_object() ? specials.value(text, Json()) : Json();
    const Json ids = special.is_object() ? special.value("ids", Json()) : Json();
    const bool is_one = ids.is_array() && ids.size() == 1;
    require_own_id(text, is_one ? ids[0] : ids, place, tokenizer);
  }
}

// One post-processor, or a Sequence of them.
void read_post_processor(const Json& part, const std::string& place, TokenizerJson& tokenizer) {
  if (part.is_null()) return;
  const Json type = part.is_object() ? part.value("type", Json()) : Json();
  if (type == "Sequence" && part.contains("processors") && part["processors"].is_array()) {
    for (const Json& one : part["processors"]) read_post_processor(one, place, tokenizer);
    return;
  }
  const bool is_roberta = type == "RobertaProcessing";
  const bool is_trimming = tokenizer.pipeline && type == "ByteLevel";  // of pipeline_json.h
  if (!is_roberta && !is_trimming && type != "BertProcessing") {
    require_type(part, "TemplateProcessing", place, "post_processor");
  }
  JsonReader reader(part, place, "post_processor");
  reader.accept("type");
  if (type == "ByteLevel") {
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) reader.accept(key);
  } else if (is_roberta || type == "BertProcessing") {
    read_bert_processing(reader, place, tokenizer);
  } else {
    read_template(reader, place, tokenizer);
  }
  if (is_roberta) {
    tokenizer.pair = {.separators = 2, .second_segment = 0};
    for (const char* key : {"add_prefix_space", "trim_offsets"}) reader.accept(key);
  }
  finish_tokenizer_file(reader);
}

void read_truncation(const Json& truncation, const std::string& place) {
  if (!truncation.is_object()) return;
  const Json direction = truncation.value("direction", Json());
  require(direction.is_null() || direction == "Right",
          "{}: key `truncation.direction` is {}; onebit cuts long texts at their end", place,
          json_text(direction));
}

Json post_processor_of(const std::vector<std::string>& vocabulary,
                       const std::vector<text::AddedToken>& added, const text::SpecialNames& names,
                       const text::PairTemplate& pair_template) {
  Json tokens = Json::object();
  for (const std::string& text : std::set<std::string>{names.cls, names.sep}) {
    tokens[text] = {{"id", text},
                    {"ids", Json::array({id_of(text, vocabulary, added).value()})},
                    {"tokens", Json::array({text})}};
  }
  const auto [single, pair] = templates_of(names.cls, names.sep, pair_template);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", tokens}};
}

}  // namespace

TokenizerJson parse_tokenizer_json(const Json& json, const std::string& place) {
  require(json.is_object(), "{}: must be an object", place);
  TokenizerJson tokenizer;
  JsonReader reader = reader_without(json, "model", place, "");
  reader.choice("version", "1.0", {"1.0"});
  read_truncation(reader.raw("truncation"), place);
  reader.accept("padding");  // onebit pads nothing
  require_known_model(member_of(json, "model"), place);
  tokenizer.decoder = read_decoder(reader.raw("decoder"), place);
  read_added_tokens(reader.raw("added_tokens"), place, tokenizer);
  if (has_pipeline(json)) {
    PipelineJson pipeline = parse_pipeline(json, place);
    tokenizer.vocabulary = std::move(pipeline.vocabulary);
    tokenizer.unk_token = std::move(pipeline.unk_token);
    tokenizer.pipeline = std::move(pipeline.rules);
    for (const char* key : {"normalizer", "pre_tokenizer"}) reader.accept(key);
  } else {
    read_normalizer(reader.raw("normalizer"), place, tokenizer);
    require_type(only_one_of(reader.raw("pre_tokenizer"), "Sequence", "pretokenizers"),
                 "BertPreTokenizer", place, "pre_tokenizer");
    read_model(member_of(json, "model"), place, tokenizer);
  }
  text::take_last_ids(tokenizer.vocabulary, tokenizer.added);
  read_post_processor(reader.raw("post_processor"), place, tokenizer);
  finish_tokenizer_file(reader);
  return tokenizer;
}

Json vocabulary_json(const std::vector<std::string>& vocabulary) {
  const text::TokenIds last = text::token_ids(vocabulary, "vocabulary");
  Json ids = Json::object();
  // Its members are a list, and operator[] would search it for every token.
  std::vector<std::pair<const std::string, Json>>& members = ids.get_ref<Json::object_t&>();
  members.reserve(vocabulary.size());
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& token = vocabulary[id];
    const bool is_last = last.find(token)->second == static_cast<int32_t>(id);
    if (!token.empty() && is_last) members.emplace_back(token, id);
  }
  return ids;
}

Json tokenizer_json(const Json& parts, const TokenizerJson& tokenizer,
                    const text::SpecialNames& names) {
  Json added = Json::array();
  for (const text::AddedToken& token : tokenizer.added) {
    added.push_back(text::added_token_json(token));
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", parts.at("normalizer")},
          {"pre_tokenizer", parts.at("pre_tokenizer")},
          {"post_processor",
           post_processor_of(tokenizer.vocabulary, tokenizer.added, names, tokenizer.pair)},
          {"decoder", parts.at("decoder")},
          {"model", parts.at("model")}};
}

std::string tokenizer_json_text(const TokenizerJson& tokenizer, const text::SpecialNames& names) {
  const Json parts = {
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", true},
        {"handle_chinese_chars", tokenizer.handle_chinese_chars},
        {"strip_accents", tokenizer.strip_accents ? Json(*tokenizer.strip_accents) : Json()},
        {"lowercase", tokenizer.lower_case}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"decoder", decoder_json(tokenizer.decoder)},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", names.unknown},
        {"continuing_subword_prefix", kWordPiecePrefix},
        {"max_input_chars_per_word", kLongestWord},
        {"vocab", vocabulary_json(tokenizer.vocabulary)}}}};
  return json_text(tokenizer_json(parts, tokenizer, names), 2);
}

}  // namespace onebit::formats
