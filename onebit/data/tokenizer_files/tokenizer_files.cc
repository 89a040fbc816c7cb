#include "onebit/data/tokenizer_files/tokenizer_files.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "onebit/data/text/characters.h"
#include "onebit/data/tokenizer_files/added_tokens.h"
#include "onebit/data/tokenizer_files/class_rules.h"
#include "onebit/data/tokenizer_files/tokenizer_config.h"
#include "onebit/data/tokenizer_files/tokenizer_json.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

using text::AddedToken;

// The files of a tokenizer that exist.
struct Sources {
  std::optional<Path> vocabulary, combined, config, specials, added, chat_template;
  // Whether the model beside them implies the class if tokenizer_config.json names none.
  bool have_model = false;
};

std::optional<Path> existing(const Path& path) {
  return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

Sources sources_in(const Path& folder) {
  return {.vocabulary = existing(folder / kVocabTxt),
          .combined = existing(folder / kTokenizerJson),
          .config = existing(folder / kTokenizerConfigJson),
          .specials = existing(folder / kSpecialTokensMapJson),
          .added = existing(folder / kAddedTokensJson),
          .chat_template = existing(folder / kChatTemplate),
          .have_model = true};
}

std::string name_in(const std::map<std::string, AddedToken>& roles, const char* role,
                    const std::string& usual) {
  const auto found = roles.find(role);
  return found == roles.end() ? usual : found->second.content;
}

text::SpecialNames names_of(const NamedSpecials& specials) {
  const text::SpecialNames usual;
  return {.unknown = name_in(specials.roles, "unk_token", usual.unknown),
          .sep = name_in(specials.roles, "sep_token", usual.sep),
          .pad = name_in(specials.roles, "pad_token", usual.pad),
          .cls = name_in(specials.roles, "cls_token", usual.cls),
          .mask = name_in(specials.roles, "mask_token", usual.mask)};
}

NamedSpecials merged(NamedSpecials specials, const NamedSpecials& further, const Path& path) {
  for (const auto& [role, token] : further.roles) {
    const auto [place, is_new] = specials.roles.emplace(role, token);
    require(place->second.content == token.content,
            "{}: key `{}` is {}, {} has {}; make them agree", path.string(), role,
            quote(token.content), kTokenizerConfigJson, quote(place->second.content));
  }
  specials.others.insert(specials.others.end(), further.others.begin(), further.others.end());
  return specials;
}

// vocab.txt may have the added tokens as well, and repeated tokens, which tokenizer.json lacks. It
// cannot tell white space at the end of a token.
std::vector<std::string> same_vocabulary(std::vector<std::string> lines, const Path& plain,
                                         const TokenizerJson& json, const Path& combined) {
  for (size_t id = 0; id < std::min(lines.size(), json.vocabulary.size()); ++id) {
    const std::string& token = json.vocabulary[id];
    if (text::without_spaces_at_end(token) == lines[id]) lines[id] = token;
  }
  if (lines == json.vocabulary) return lines;
  const text::TokenIds ids = text::token_ids(lines, plain.string());
  const auto differ = [&](size_t id, const std::string& line, const std::string& token) {
    fail("{}: id {} is {}, in {} it is {}; remove the file that is not the model's", plain.string(),
         id, quote(line), combined.string(), quote(token));
  };
  for (size_t id = 0; id < json.vocabulary.size(); ++id) {
    const std::string& token = json.vocabulary[id];
    if (token.empty()) continue;
    const auto found = ids.find(token);
    if (found == ids.end() || found->second != static_cast<int32_t>(id)) {
      differ(id, id < lines.size() ? lines[id] : "nothing", token);
    }
  }
  for (const auto& entry : ids) {
    const std::string& line = entry.first;
    const int32_t id = entry.second;
    const auto at = static_cast<size_t>(id);
    const bool in_model = at < json.vocabulary.size() && json.vocabulary[at] == line;
    const bool is_added = std::any_of(
        json.added.begin(), json.added.end(),
        [&](const AddedToken& token) { return token.id == id && token.content == line; });
    if (!in_model && !is_added && !line.empty()) differ(at, line, "nothing");
  }
  lines.resize(json.vocabulary.size());
  return lines;
}

std::string config_place(const Sources& sources) {
  if (sources.config) return sources.config->string();
  return (sources.combined->parent_path() / kTokenizerConfigJson).string() +
         ", which does not exist";
}

std::optional<TokenizerConfigFile> config_of(const std::optional<TokenizerConfigMembers>& members,
                                             const std::optional<TokenizerJson>& json,
                                             const Sources& sources) {
  TokenizerConfigFile config;
  const bool is_said = members && members->lower_case;
  if (!is_said && !json) return std::nullopt;
  if (json && json->pipeline) {
    // The file says all. Other classes than BERT's do not read the other members.
    config = {.lower_case = false, .strip_accents = false};
    if (sources.config)
      config.model_max_length = members->model_max_length.value_or(kNoLengthLimit);
    return config;
  }
  if (json) {
    config.lower_case = json->lower_case;
    config.strip_accents = json->strip_accents;
    config.tokenize_chinese_chars = json->handle_chinese_chars;
  }
  if (members) {
    const std::string place = config_place(sources);
    if (json) check_word_piece_rules(*members, *json, place);
    const bool lower_case = members->lower_case.value_or(config.lower_case);
    require(!json || lower_case == json->lower_case,
            "{}: has do_lower_case {}, tokenizer.json has lowercase {}; correct one of them", place,
            lower_case, json && json->lower_case);
    config.lower_case = lower_case;
    if (members->strip_accents) config.strip_accents = members->strip_accents;
    config.tokenize_chinese_chars =
        config.tokenize_chinese_chars && members->tokenize_chinese_chars.value_or(true);
    if (sources.config)
      config.model_max_length = members->model_max_length.value_or(kNoLengthLimit);
  }
  return config;
}

void check_template(const std::optional<TokenizerConfigMembers>& members, const TokenizerJson& json,
                    const text::SpecialNames& names, const std::string& place) {
  require(json.unk_token == names.unknown || (json.pipeline && json.unk_token.empty()),
          "{}: key `model.unk_token` is {}, and {} has the unk_token {}; make them agree", place,
          quote(json.unk_token), kTokenizerConfigJson, quote(names.unknown));
  // Many of transformers' classes make the template themselves.
  require(json.cls_token || !members || members->pair,
          "{}: key `post_processor` is none, so no [CLS] and [SEP] are put around a text; onebit "
          "puts them there: if the model was trained with them, write \"tokenizer_class\": "
          "\"BertTokenizer\" into {}",
          place, kTokenizerConfigJson);
  require(!json.cls_token || (*json.cls_token == names.cls && *json.sep_token == names.sep),
          "{}: key `post_processor` puts {} and {} around a text, and {} has the cls_token {} and "
          "the sep_token {}; make them agree",
          place, quote(json.cls_token.value_or("")), quote(json.sep_token.value_or("")),
          kTokenizerConfigJson, quote(names.cls), quote(names.sep));
}

// What a tokenizer.json alone says of the roles: it has no names for [PAD] and [MASK].
text::SpecialNames names_in(const TokenizerJson& json) {
  const auto usual = [&](const char* bert, const char* roberta) {
    const bool has_other =
        std::any_of(json.added.begin(), json.added.end(),
                    [&](const AddedToken& token) { return token.content == roberta; });
    return std::string(has_other ? roberta : bert);
  };
  return {.unknown = json.unk_token.empty() ? usual("[UNK]", "<unk>") : json.unk_token,
          .sep = json.sep_token.value_or(usual("[SEP]", "</s>")),
          .pad = usual("[PAD]", "<pad>"),
          .cls = json.cls_token.value_or(usual("[CLS]", "<s>")),
          .mask = usual("[MASK]", "<mask>")};
}

// tokenizer_config.json, with the class that the model beside it implies if it names none, or that
// alone. Null: there is neither.
Json config_json(const Sources& sources, const Json& combined) {
  Json config = sources.config ? read_json(*sources.config) : Json();
  if (!sources.have_model || !sources.combined) return config;
  if (!config.is_object() && sources.config) return config;
  if (config.is_object() && !config.value("tokenizer_class", Json()).is_null()) return config;
  const std::string implied = implied_class(sources.combined->parent_path(), combined);
  if (!implied.empty()) config["tokenizer_class"] = implied;
  return config;
}

void keep_files(const Sources& sources, std::string combined, const Json& config,
                text::PipelineRules& rules) {
  rules.files[kTokenizerJson] = std::move(combined);
  for (const std::optional<Path>& path : {sources.config, sources.specials}) {
    if (path) rules.files[path->filename().string()] = read_regular_file(*path, kMaxJsonBytes);
  }
  // In a copy without the model's config.json, the class is the same.
  if (config != (sources.config ? read_json(*sources.config) : Json())) {
    rules.files[kTokenizerConfigJson] = json_text(config);
  }
}

// Error: a class for any tokenizer.json, without that file.
void require_rules(const std::optional<TokenizerConfigMembers>& members, const Sources& sources) {
  require(!members || !members->is_generic,
          "{}: key `tokenizer_class` is a class that takes its rules from {}, which does not "
          "exist; if the model is a BERT, write BertTokenizer there",
          sources.config ? sources.config->string() : "", kTokenizerJson);
}

// The added tokens of all files. `of_map` are the specials of special_tokens_map.json, and
// `specials` all of them.
std::vector<AddedToken> added_tokens(const Sources& sources,
                                     const std::optional<TokenizerConfigMembers>& members,
                                     const std::optional<TokenizerJson>& json,
                                     const NamedSpecials& specials, const NamedSpecials& of_map,
                                     const std::vector<std::string>& tokens) {
  AddedTokens added(tokens);
  if (members) added.add(members->added, config_place(sources));
  if (json) added.add(json->added, sources.combined->string());
  if (sources.added) added.add_file(*sources.added, specials);
  const text::TokenIds ids = special_ids(specials, tokens);
  if (members) added.add_specials(members->specials, ids, config_place(sources));
  if (sources.specials) added.add_specials(of_map, ids, sources.specials->string());
  return added.by_id();
}

TokenizerFiles read_sources(const Sources& sources) {
  std::optional<TokenizerConfigMembers> members;
  std::optional<TokenizerJson> json;
  NamedSpecials specials, of_map;
  TokenizerFiles files;
  std::string text = sources.combined ? read_regular_file(*sources.combined, kMaxJsonBytes) : "";
  Json combined = sources.combined ? parse_json(text, sources.combined->string()) : Json();
  const Json config = config_json(sources, combined);
  if (sources.config || !config.is_null()) {
    members = parse_tokenizer_config(config, config_place(sources));
    specials = members->specials;
    files.vocabulary.has_segments = members->has_segments;
    files.vocabulary.kept.members = members->kept;
  }
  if (sources.specials) {
    of_map = parse_special_tokens_map(read_json(*sources.specials), sources.specials->string());
    specials = merged(std::move(specials), of_map, *sources.specials);
  }
  files.vocabulary.names = names_of(specials);
  if (sources.combined) {
    const std::string place = sources.combined->string();
    const Path folder = sources.combined->parent_path();
    json =
        parse_tokenizer_json(with_class_rules(folder, std::move(combined), members, place), place);
    // Runs of onebit may pair a BERT with any lone tokenizer.json, which says all of its rules.
    if (json->pipeline && members && members->is_bert && !sources.config) members.reset();
    if (json->pipeline) {
      check_pipeline_class(members, *json, *sources.combined);
      keep_files(sources, std::move(text), members ? config : Json(), *json->pipeline);
      files.vocabulary.pipeline = json->pipeline;
      if (specials.roles.empty()) files.vocabulary.names = names_in(*json);
    } else {
      check_word_piece_class(members, place);
    }
    files.vocabulary.pair = members && members->pair ? *members->pair : json->pair;
    // A file alone names the tokens that are looked for in the text.
    files.vocabulary.finds_names = !json->pipeline || members || sources.specials;
    files.vocabulary.decoder = json->decoder;
    check_template(members, *json, files.vocabulary.names, place);
    files.vocabulary.tokens = json->vocabulary;
  } else {
    require_rules(members, sources);
  }
  if (sources.vocabulary) {
    files.vocabulary.tokens = text::read_vocabulary_lines(*sources.vocabulary);
    if (json) {
      files.vocabulary.tokens = same_vocabulary(std::move(files.vocabulary.tokens),
                                                *sources.vocabulary, *json, *sources.combined);
    }
  }
  files.vocabulary.added =
      added_tokens(sources, members, json, specials, of_map, files.vocabulary.tokens);
  if (sources.chat_template) {
    files.vocabulary.kept.files[kChatTemplate] =
        read_regular_file(*sources.chat_template, kMaxJsonBytes);
  }
  files.config = config_of(members, json, sources);
  return files;
}

Sources with_vocabulary(Sources sources, const Path& vocabulary) {
  if (vocabulary.extension() == ".json") {
    sources.combined = vocabulary;
    sources.vocabulary.reset();
  } else {
    sources.vocabulary = vocabulary;
  }
  return sources;
}

// Error: the vocabulary is in files that say less than tokenizer.json.
void refuse_other_vocabularies(const Path& folder) {
  constexpr const char* kOthers[] = {"vocab.json", "sentencepiece.bpe.model", "sentencepiece.model",
                                     "spiece.model", "tokenizer.model"};
  for (const char* other : kOthers) {
    require(!std::filesystem::exists(folder / other),
            "{}: has {} and no {}, which says how text is normalised and cut as well; write it "
            "with transformers: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)",
            folder.string(), other, kTokenizerJson);
  }
}

}  // namespace

TokenizerFiles read_tokenizer(const Path& folder) {
  const Sources sources = sources_in(folder);
  if (!sources.vocabulary && !sources.combined) refuse_other_vocabularies(folder);
  require(sources.vocabulary || sources.combined,
          "{}: contains no vocabulary: neither vocab.txt nor tokenizer.json exists",
          folder.string());
  return read_sources(sources);
}

TokenizerFiles read_tokenizer_with(const Path& vocabulary) {
  return read_sources(with_vocabulary(sources_in(vocabulary.parent_path()), vocabulary));
}

TokenizerFiles read_tokenizer_alone(const Path& vocabulary) {
  return read_sources(with_vocabulary({}, vocabulary));
}

}  // namespace onebit::formats
