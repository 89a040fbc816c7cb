#include "onebit/data/tokenizer_files/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/wording.h"

namespace onebit::formats {
namespace {

// Classes that tokenize as BertTokenizer does.
constexpr const char* kBertClasses[] = {"BertTokenizer",
                                        "BertTokenizerFast",
                                        "DistilBertTokenizer",
                                        "DistilBertTokenizerFast",
                                        "ElectraTokenizer",
                                        "ElectraTokenizerFast",
                                        "ConvBertTokenizer",
                                        "ConvBertTokenizerFast",
                                        "MobileBertTokenizer",
                                        "MobileBertTokenizerFast",
                                        "SqueezeBertTokenizer",
                                        "SqueezeBertTokenizerFast",
                                        "LxmertTokenizer",
                                        "LxmertTokenizerFast",
                                        "RetriBertTokenizer",
                                        "RetriBertTokenizerFast",
                                        "DPRQuestionEncoderTokenizer",
                                        "DPRQuestionEncoderTokenizerFast",
                                        "DPRContextEncoderTokenizer",
                                        "DPRContextEncoderTokenizerFast",
                                        "DPRReaderTokenizer",
                                        "DPRReaderTokenizerFast"};
// Classes that take all rules from tokenizer.json.
constexpr const char* kGenericClasses[] = {"PreTrainedTokenizerFast", "TokenizersBackend",
                                           "PreTrainedTokenizer"};

// WordPiece with other special tokens than BERT's.
constexpr const char* kOtherWordPieceClasses[] = {"MPNetTokenizer", "MPNetTokenizerFast"};

// Those of BERT's classes whose models are given no segments.
constexpr const char* kBertClassesWithoutSegments[] = {
    "DistilBertTokenizer",    "DistilBertTokenizerFast", "RetriBertTokenizer",
    "RetriBertTokenizerFast", "DPRReaderTokenizer",      "DPRReaderTokenizerFast"};

// Classes that put two separators between the texts of a pair, and segment 0 to both.
constexpr const char* kTwoSeparatorClasses[] = {"MPNetTokenizer",      "MPNetTokenizerFast",
                                                "RobertaTokenizer",    "RobertaTokenizerFast",
                                                "LongformerTokenizer", "LongformerTokenizerFast",
                                                "XLMRobertaTokenizer", "XLMRobertaTokenizerFast",
                                                "CamembertTokenizer",  "CamembertTokenizerFast"};
// Classes whose template has the tokens <s> and </s>, whatever the files name.
constexpr const char* kFixedNameClasses[] = {"XLMRobertaTokenizer", "XLMRobertaTokenizerFast",
                                             "CamembertTokenizer", "CamembertTokenizerFast"};

// Classes of byte pairs and unigram models. They take their rules from tokenizer.json as well.
constexpr const char* kPipelineClasses[] = {
    "RobertaTokenizer",        "RobertaTokenizerFast", "XLMRobertaTokenizer",
    "XLMRobertaTokenizerFast", "CamembertTokenizer",   "CamembertTokenizerFast",
    "GPT2Tokenizer",           "GPT2TokenizerFast",    "GemmaTokenizer",
    "GemmaTokenizerFast",      "LongformerTokenizer",  "LongformerTokenizerFast",
    "AlbertTokenizer",         "AlbertTokenizerFast"};

// Members that change no id of a text that is not cut: what transformers stores of the calls that
// made the tokenizer and load it, of ids that its tokens have anyway, and for the way back to text.
constexpr const char* kHarmless[] = {"_commit_hash",
                                     "_from_auto",
                                     "_name_or_path",
                                     "backend",
                                     "bos_token_id",
                                     "cache_dir",
                                     "cls_token_id",
                                     "device_map",
                                     "eos_token_id",
                                     "errors",
                                     "fix_mistral_regex",
                                     "force_download",
                                     "from_slow",
                                     "full_tokenizer_file",
                                     "is_local",
                                     "language",
                                     "local_files_only",
                                     "mask_token_id",
                                     "legacy",
                                     "max_length",
                                     "max_seq_length",
                                     "max_len_sentences_pair",
                                     "max_len_single_sentence",
                                     "mirror",
                                     "model_type",
                                     "name_or_path",
                                     "pad_token_id",
                                     "padding",
                                     "processor_class",
                                     "proxies",
                                     "resume_download",
                                     "return_attention_mask",
                                     "return_length",
                                     "return_offsets_mapping",
                                     "return_overflowing_tokens",
                                     "return_special_tokens_mask",
                                     "return_tensors",
                                     "return_token_type_ids",
                                     "revision",
                                     "sep_token_id",
                                     "sp_model_kwargs",
                                     "special_tokens_map_file",
                                     "stride",
                                     "subfolder",
                                     "token",
                                     "tokenizer_file",
                                     "tokenizers_version",
                                     "transformers_version",
                                     "trim_offsets",
                                     "trust_remote_code",
                                     "truncation",
                                     "truncation_strategy",
                                     "unk_token_id",
                                     "use_auth_token",
                                     "use_fast",
                                     "verbose",
                                     "vocab_file",
                                     "vocab_size"};

// Members that change no id either, and that somebody uses who loads the folder in transformers.
constexpr const char* kKept[] = {"bos_token",
                                 "chat_template",
                                 "clean_up_tokenization_spaces",
                                 "eos_token",
                                 "pad_to_multiple_of",
                                 "pad_token_type_id",
                                 "padding_side",
                                 "spaces_between_special_tokens"};

constexpr const char* kRoles[] = {"unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
constexpr const char* kOtherRoles[] = {"bos_token", "eos_token"};
// Tokens by number or, in newer files, by a name of the model's own.
constexpr const char* kLists[] = {"additional_special_tokens", "extra_special_tokens",
                                  "model_specific_special_tokens"};

// A special token is a string, or an object with its settings.
std::optional<text::AddedToken> special_token(const Json& value, const std::string& place,
                                              const std::string& key) {
  if (value.is_null() || value == false) return std::nullopt;
  text::AddedToken token{.special = true};
  if (value.is_string()) {
    token.content = value.get<std::string>();
    return token.content.empty() ? std::nullopt : std::optional(token);
  }
  require(value.is_object(), "{}: key `{}` is not a token: a text or an object was expected", place,
          key);
  JsonReader reader(value, place, key);
  token = text::read_added_token(reader);
  token.special = true;
  return token;
}

NamedSpecials read_specials(JsonReader& reader, const std::string& place) {
  NamedSpecials found;
  for (const char* role : kRoles) {
    if (auto token = special_token(reader.raw(role), place, role)) {
      found.roles.emplace(role, std::move(*token));
    }
  }
  for (const char* role : kOtherRoles) {
    if (auto token = special_token(reader.raw(role), place, role)) found.others.push_back(*token);
  }
  for (const char* list : kLists) {
    const Json& tokens = reader.raw(list);
    require(tokens.is_null() || tokens.is_structured(), "{}: key `{}` is not a list of tokens",
            place, list);
    for (const Json& one : tokens) {
      if (auto token = special_token(one, place, list)) found.others.push_back(*token);
    }
  }
  return found;
}

int64_t max_length_at(JsonReader& reader, const std::string& key) {
  const double value = reader.number(key, 0);
  require(value >= 1, "{} is {}; it must be positive", reader.place(key), value);
  return value > 1e9 ? kNoLengthLimit : static_cast<int64_t>(value);
}

std::vector<text::AddedToken> decoder_tokens(JsonReader& reader, const std::string& place) {
  std::vector<text::AddedToken> tokens;
  const Json& given = reader.raw("added_tokens_decoder");
  require(given.is_null() || given.is_object(), "{}: key `added_tokens_decoder` is not an object",
          place);
  for (const auto& [key, value] : given.items()) {
    const std::string path = "added_tokens_decoder." + key;
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    require(error == std::errc() && end == key.data() + key.size() && id >= 0,
            "{}: key `{}`: its name must be a token's id", place, path);
    require(value.is_object(), "{}: key `{}` is not an object", place, path);
    JsonReader token(value, place, path);
    tokens.push_back(text::read_added_token(token));
    tokens.back().id = id;
  }
  return tokens;
}

void refuse(JsonReader& reader, const char* key, const Json& harmless, const char* why) {
  const Json& value = reader.raw(key);
  require(value.is_null() || value == harmless || (value.is_array() && value.empty()),
          "{} is {}; {}", reader.place(key), json_text(value), why);
}

// Special tokens are never split in any tokenizer, and the first BERT tokenizers listed them here.
void refuse_never_split(JsonReader& reader, const NamedSpecials& specials) {
  const Json& given = reader.raw("never_split");
  const auto is_special = [&](const Json& token) {
    const auto is_it = [&](const auto& role) { return token == role.second.content; };
    return token.is_string() &&
           (std::ranges::any_of(specials.roles, is_it) ||
            std::ranges::find(text::kSpecialTokens, token.get<std::string>()) !=
                text::kSpecialTokens.end());
  };
  require(given.is_null() || (given.is_array() && std::ranges::all_of(given, is_special)),
          "{} is {}; onebit's tokenizer splits every word that is no special token",
          reader.place("never_split"), json_text(given));
}

// The class that a misspelled name means. Classes of other models have names that are near as well:
// LlamaTokenizer and GemmaTokenizer.
std::string similar_class(const std::string& given) {
  if (given.ends_with("Tokenizer") || given.ends_with("TokenizerFast")) return "";
  std::vector<std::string> known(std::begin(kBertClasses), std::end(kBertClasses));
  known.insert(known.end(), std::begin(kPipelineClasses), std::end(kPipelineClasses));
  known.insert(known.end(), std::begin(kOtherWordPieceClasses), std::end(kOtherWordPieceClasses));
  known.insert(known.end(), std::begin(kGenericClasses), std::end(kGenericClasses));
  return nearest_word(given, known);
}

void read_class(JsonReader& reader, TokenizerConfigMembers& members) {
  const std::string given = reader.text("tokenizer_class", "BertTokenizer");
  const auto is_in = [&](const auto& list) {
    return std::ranges::find(list, given) != std::end(list);
  };
  members.tokenizer_class = given;
  members.is_bert = is_in(kBertClasses);
  members.is_pipeline = is_in(kPipelineClasses);
  members.is_generic =
      is_in(kGenericClasses) || is_in(kOtherWordPieceClasses) || members.is_pipeline;
  members.has_segments = members.is_bert && !is_in(kBertClassesWithoutSegments);
  if (members.is_bert) members.pair = text::PairTemplate();
  if (is_in(kTwoSeparatorClasses)) members.pair = {.separators = 2, .second_segment = 0};
  require(
      !given.starts_with("T5Tokenizer"),
      "{} is {}, which puts </s> behind a text and nothing before it; onebit puts [CLS] and [SEP] "
      "around it: if the template of tokenizer.json is right, write PreTrainedTokenizerFast",
      reader.place("tokenizer_class"), quote(given));
  const std::string near = similar_class(given);
  require(
      members.is_bert || members.is_generic,
      "{} is {}{}; onebit knows BertTokenizer, DistilBertTokenizer, ElectraTokenizer, "
      "MPNetTokenizer, RobertaTokenizer, XLMRobertaTokenizer, CamembertTokenizer and their like, "
      "and "
      "PreTrainedTokenizerFast and TokenizersBackend with a tokenizer.json",
      reader.place("tokenizer_class"), quote(given),
      near.empty() ? "" : fmt::format(" (did you mean {}?)", quote(near)));
}

// These classes keep do_lower_case to themselves: the text is lower-cased in any case.
void require_lower_case(JsonReader& reader, const TokenizerConfigMembers& members) {
  constexpr const char* kAlwaysLower[] = {"DPRQuestionEncoderTokenizer",
                                          "DPRContextEncoderTokenizer", "DPRReaderTokenizer"};
  if (std::ranges::find(kAlwaysLower, members.tokenizer_class) == std::end(kAlwaysLower)) return;
  require(members.lower_case.value_or(true),
          "{} is {}, which lower-cases text in transformers 5 although do_lower_case is false; "
          "write BertTokenizer as tokenizer_class if the model is cased, or do_lower_case true",
          reader.place("tokenizer_class"), quote(members.tokenizer_class));
}

void require_fixed_names(JsonReader& reader, const NamedSpecials& specials) {
  const std::string given = reader.text("tokenizer_class", "");
  if (std::ranges::find(kFixedNameClasses, given) == std::end(kFixedNameClasses)) return;
  for (const auto& [role, name] : {std::pair("cls_token", "<s>"), std::pair("sep_token", "</s>")}) {
    const auto found = specials.roles.find(role);
    require(found == specials.roles.end() || found->second.content == name,
            "{} is {}, and the class {} puts {} there; write PreTrainedTokenizerFast as "
            "tokenizer_class if the token is the model's",
            reader.place(role), found == specials.roles.end() ? "" : quote(found->second.content),
            given, name);
  }
}

void read_input_names(JsonReader& reader, TokenizerConfigMembers& members) {
  const Json& names = reader.raw("model_input_names");
  if (names.is_null()) return;
  require(names.is_array() && std::ranges::all_of(names, &Json::is_string),
          "{} is {}; it must be a list of names, like [\"input_ids\", \"attention_mask\"]",
          reader.place("model_input_names"), json_text(names));
  members.has_segments = std::ranges::find(names, Json("token_type_ids")) != names.end();
}

}  // namespace

void finish_tokenizer_file(const JsonReader& reader) {
  try {
    reader.finish();
  } catch (const Error& error) {
    fail("{}; onebit does not know what it changes: remove it if it changes no token",
         error.what());
  }
}

TokenizerConfigMembers parse_tokenizer_config(const Json& json, const std::string& place) {
  require(json.is_object(), "{}: must be an object", place);
  JsonReader reader(json, place, "");
  TokenizerConfigMembers members;
  read_class(reader, members);
  read_input_names(reader, members);
  const auto flag = [&](const char* key) -> std::optional<bool> {
    if (reader.raw(key).is_null()) return std::nullopt;
    return reader.boolean(key, true);
  };
  members.lower_case = flag("do_lower_case");
  require_lower_case(reader, members);
  members.strip_accents = flag("strip_accents");
  if (members.tokenizer_class.starts_with("AlbertTokenizer")) {
    members.keep_accents = flag("keep_accents");
  }
  members.tokenize_chinese_chars = flag("tokenize_chinese_chars");
  for (const char* key : {"max_len", "model_max_length"}) {
    if (!reader.raw(key).is_null()) members.model_max_length = max_length_at(reader, key);
  }
  members.specials = read_specials(reader, place);
  require_fixed_names(reader, members.specials);
  members.added = decoder_tokens(reader, place);
  refuse_never_split(reader, members.specials);
  refuse(reader, "do_basic_tokenize", true, "onebit's tokenizer splits text into words first");
  refuse(reader, "split_special_tokens", false, "onebit finds special tokens in the text");
  refuse(reader, "truncation_side", "right", "onebit cuts long texts at their end");
  refuse(reader, "wordpieces_prefix", "##", "onebit's tokenizer has ##");
  refuse(reader, "clean_text", true, "onebit's tokenizer always removes control characters");
  refuse(reader, "do_word_tokenize", true, "onebit's tokenizer splits text into words first");
  refuse(reader, "do_subword_tokenize", true, "onebit's tokenizer splits words into pieces");
  refuse(reader, "max_input_chars_per_word", 100, "onebit's tokenizer has 100");
  // transformers reads only the first of the two names.
  refuse(reader, "lowercase", members.lower_case.value_or(true), "do_lower_case is not");
  for (const char* key : {"add_bos_token", "add_eos_token"}) {
    refuse(reader, key, false, "onebit puts [CLS] and [SEP] around every text, and nothing else");
  }
  refuse(reader, "add_special_tokens", true, "onebit puts [CLS] and [SEP] around every text");
  members.add_prefix_space = flag("add_prefix_space");
  refuse(reader, "auto_map", nullptr, "it names a tokenizer of its own, which onebit does not run");
  refuse(reader, "init_inputs", Json::array(), "onebit does not know what they change");
  for (const char* key : kKept) {
    const Json& value = reader.raw(key);
    if (!value.is_null()) members.kept[key] = json_text(value);
  }
  for (const char* key : kHarmless) reader.accept(key);
  finish_tokenizer_file(reader);
  return members;
}

NamedSpecials parse_special_tokens_map(const Json& json, const std::string& place) {
  require(json.is_object(), "{}: must be an object", place);
  JsonReader reader(json, place, "");
  NamedSpecials specials = read_specials(reader, place);
  finish_tokenizer_file(reader);
  return specials;
}

}  // namespace onebit::formats
