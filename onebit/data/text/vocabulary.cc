#include "onebit/data/text/vocabulary.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <utility>

#include "onebit/data/text/characters.h"
#include "onebit/data/text/pipeline.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/printable.h"

namespace onebit::text {

namespace {

constexpr FileKind kVocabularyFile = {"a vocabulary", uint64_t{64} << 20};

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// The lines as BERT's code and `tokenizers` read them.
std::vector<std::string> trimmed_lines(std::string_view text) {
  std::vector<std::string> lines = split_lines(text);
  for (std::string& line : lines) line.resize(without_spaces_at_end(line).size());
  return lines;
}

// FNV-1a over the tokens and the further text, each followed by a newline.
uint32_t checksum_of(const std::vector<std::string>& tokens, const std::string& further) {
  uint32_t hash = 0x811C9DC5u;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193u;
  };
  for (const std::string& token : tokens) {
    add(token);
    add("\n");
  }
  add(further);
  return hash;
}

// A program may read and write one vocabulary several times.
bool is_first_report(const std::vector<std::string>& tokens) {
  static std::mutex mutex;
  static std::set<uint32_t> reported;
  const std::lock_guard lock(mutex);
  return reported.insert(checksum_of(tokens, "")).second;
}

void report_idle_lines(const std::vector<std::string>& tokens, const TokenIds& ids,
                       const std::string& source) {
  if (ids.size() == tokens.size() && !ids.contains("")) return;
  size_t empty = 0, repeated = 0, first = tokens.size();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_empty = tokens[i].empty();
    const bool is_repeated = !is_empty && ids.find(tokens[i])->second != static_cast<int32_t>(i);
    empty += is_empty ? 1 : 0;
    repeated += is_repeated ? 1 : 0;
    if (is_empty || is_repeated) first = std::min(first, i);
  }
  if (!is_first_report(tokens)) return;
  log_warning(
      "{}: {} ids have no token and {} have the token of a later one, the first is {}; they are "
      "kept "
      "and stand for no text, as in transformers",
      source, empty, repeated, first);
}

std::vector<AddedToken> special_tokens_of(const TokenIds& ids, const SpecialNames& names) {
  std::vector<AddedToken> special;
  for (const std::string* name :
       {&names.pad, &names.unknown, &names.cls, &names.sep, &names.mask}) {
    const auto found = ids.find(*name);
    if (found != ids.end()) {
      special.push_back({.id = found->second, .content = *name, .special = true});
    }
  }
  return special;
}

void check_tokens(const std::vector<std::string>& tokens, const std::string& source) {
  require(!tokens.empty(), "{}: contains no tokens; expected one token per line", source);
  require(!tokens[0].starts_with("\xEF\xBB\xBF"),
          "{}:1: begins with a byte order mark, which would be part of the first token; save the "
          "file as UTF-8 without it",
          source);
  for (size_t i = 0; i < tokens.size(); ++i) {
    require(!first_invalid_utf8(tokens[i]), "{}:{}: not UTF-8; convert the vocabulary", source,
            i + 1);
  }
}

// A store and a model folder have the tokens as the lines of vocab.txt.
void require_lines(const std::vector<std::string>& tokens, const std::string& source) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    require(
        tokens[i].find('\n') == std::string::npos,
        "{}: the token {} (id {}) contains a line end, which no line of vocab.txt can hold, and "
        "no text: give the id a token of its own, for example [unused1]",
        source, quote(tokens[i]), i);
  }
}

}  // namespace

TokenIds token_ids(const std::vector<std::string>& tokens, const std::string& source) {
  check_tokens(tokens, source);
  TokenIds ids;
  ids.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    ids.insert_or_assign(tokens[i], static_cast<int32_t>(i));
  }
  return ids;
}

std::vector<std::string> read_vocabulary_lines(const Path& vocab_txt) {
  std::vector<std::string> tokens = trimmed_lines(read_given_file(vocab_txt, kVocabularyFile));
  check_tokens(tokens, vocab_txt.string());
  return tokens;
}

std::vector<std::string> read_saved_tokens(const Path& vocab_txt) {
  return split_lines(read_given_file(vocab_txt, kVocabularyFile));
}

std::string vocabulary_text(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text.append(token).push_back('\n');
  return text;
}

Vocabulary Vocabulary::load(const Path& vocab_txt) {
  return from_tokens(trimmed_lines(read_given_file(vocab_txt, kVocabularyFile)),
                     vocab_txt.string());
}

Vocabulary Vocabulary::from_tokens(std::vector<std::string> tokens, const std::string& source) {
  return from_parts({.tokens = std::move(tokens)}, source);
}

Vocabulary Vocabulary::from_parts(VocabularyParts parts, const std::string& source) {
  Vocabulary vocabulary;
  vocabulary.ids_ = token_ids(parts.tokens, source);
  if (!parts.pipeline) require_lines(parts.tokens, source);
  report_idle_lines(parts.tokens, vocabulary.ids_, source);
  vocabulary.ids_.erase("");
  vocabulary.tokens_ = std::move(parts.tokens);
  vocabulary.model_size_ = vocabulary.size();
  vocabulary.names_ = std::move(parts.names);
  vocabulary.pipeline_ = std::move(parts.pipeline);
  vocabulary.pair_ = parts.pair;
  vocabulary.has_segments_ = parts.has_segments;
  vocabulary.finds_names_ = parts.finds_names;
  vocabulary.decoder_ = std::move(parts.decoder);
  vocabulary.kept_ = std::move(parts.kept);
  if (vocabulary.pipeline_) {
    vocabulary.word_mark_ = vocabulary.pipeline_->word_mark;
    const std::string& mark = vocabulary.pipeline_->continuing_mark;
    if (!mark.empty()) vocabulary.continuing_mark_ = mark;
    vocabulary.word_end_ = vocabulary.pipeline_->word_end;
    vocabulary.shows_words_ =
        !mark.empty() || !vocabulary.word_mark_.empty() || !vocabulary.word_end_.empty();
  }
  vocabulary.set_added(std::move(parts.added), source);
  vocabulary.set_roles(source);
  return vocabulary;
}

void Vocabulary::set_added(std::vector<AddedToken> added, const std::string& source) {
  std::stable_sort(added.begin(), added.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  // A list of pieces counts those that it repeats, too, and other vocabularies are by token.
  const bool is_list = pipeline_ && std::holds_alternative<Unigram>(pipeline_->model);
  const bool has_idle_lines = !is_list && ids_.size() != tokens_.size();
  for (const AddedToken& token : added) {
    const auto [place, is_new] = ids_.emplace(token.content, size());
    require(place->second == token.id,
            "{}: the added token '{}' has the id {}; `tokenizers` gives it {}: {}; correct the id "
            "if the model has a row for it there, or remove the token",
            source, token.content, token.id, place->second,
            is_new ? "added tokens follow the vocabulary without a gap"
                   : "the vocabulary has it there");
    // `tokenizers` counts distinct tokens, so it would give the token an id that a line has
    // already.
    require(
        !is_new || !has_idle_lines,
        "{}: has repeated or empty lines, and the added token '{}' that is not among them; give "
        "those lines tokens of their own, for example [unused1]",
        source, token.content);
    if (is_new) tokens_.push_back(token.content);
  }
  const std::vector<AddedToken> usual = special_tokens_of(ids_, names_);
  for (const AddedToken& token : usual) {
    const auto same = [&](const AddedToken& other) { return other.id == token.id; };
    if (finds_names_ && std::none_of(added.begin(), added.end(), same)) added.push_back(token);
  }
  std::stable_sort(added.begin(), added.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  added_ = std::move(added);
  is_plain_ = !pipeline_ && pair_ == PairTemplate() && names_ == SpecialNames() &&
              added_.size() == usual.size() &&
              std::all_of(added_.begin(), added_.end(), [](const AddedToken& token) {
                return is_found_as_written(token) && token.special;
              });
}

void Vocabulary::set_roles(const std::string& source) {
  const SpecialNames usual;
  const auto special = [&](const char* role, const std::string& token,
                           const std::string& usual_token) {
    if (const auto id = find(token)) return *id;
    // The role may be what is wrong, and not the vocabulary.
    fail("{}: no {} among {} tokens, and an encoder needs its {}: {}{}", source, token, size(),
         role,
         pipeline_ || !source.ends_with(".txt") ? "add it to the tokenizer's tokens"
                                                : "add it as a line of its own",
         token == usual_token ? ""
                              : fmt::format(", or correct `{}` in tokenizer_config.json and "
                                            "special_tokens_map.json",
                                            role));
  };
  unknown_id_ = special("unk_token", names_.unknown, usual.unknown);
  cls_id_ = special("cls_token", names_.cls, usual.cls);
  sep_id_ = special("sep_token", names_.sep, usual.sep);
  mask_id_ = special("mask_token", names_.mask, usual.mask);
  pad_id_ = special("pad_token", names_.pad, usual.pad);
  std::string further;
  if (!is_plain_) {
    for (const AddedToken& token : added_) further += json_text(added_token_json(token)) + "\n";
    further += names_.unknown + names_.cls + names_.sep + names_.mask + names_.pad;
    if (pair_ != PairTemplate()) {
      further += fmt::format("{} {}", pair_.separators, pair_.second_segment);
    }
    if (pipeline_) further += fmt::format("{:08x}", pipeline_->checksum);
  }
  checksum_ = checksum_of(tokens_, further);
}

VocabularyParts Vocabulary::parts() const {
  return {.tokens = {tokens_.begin(), tokens_.begin() + model_size_},
          .added = added_,
          .names = names_,
          .finds_names = finds_names_,
          .pipeline = pipeline_,
          .pair = pair_,
          .has_segments = has_segments_,
          .decoder = decoder_,
          .kept = kept_};
}

// As in `tokenizers`: an added token that is searched for in its normal form is shown in that form.
std::string Vocabulary::decode(std::span<const int32_t> ids, bool skips_special) const {
  std::vector<std::string> tokens;
  NormalizedText text(false), scratch(false);
  for (const int32_t id : ids) {
    require(id >= 0 && id < size(), "id {} is not one of the vocabulary's 0 to {}", id, size() - 1);
    const auto added = std::find_if(added_.begin(), added_.end(),
                                    [id](const AddedToken& token) { return token.id == id; });
    const bool is_added = added != added_.end();
    if (skips_special && is_added && added->special) continue;
    if (is_added && added->normalized && pipeline_) {
      text.assign(token(id));
      pipeline_->normalizer.apply(text, scratch);
      tokens.push_back(text.text());
    } else {
      tokens.push_back(token(id));
    }
  }
  return decoder_.decode(std::move(tokens));
}

bool Vocabulary::is_continuation(int32_t id) const {
  if (id >= model_size_) return false;
  if (!word_end_.empty()) return !is_added(id);
  const std::string& text = token(id);
  return word_mark_.empty() ? text.starts_with(continuing_mark_)
                            : !text.starts_with(word_mark_) && !is_added(id);
}

bool Vocabulary::ends_word(int32_t id) const {
  if (word_end_.empty()) return false;
  return id >= model_size_ || id == unknown_id_ || is_added(id) || token(id).ends_with(word_end_);
}

bool Vocabulary::is_added(int32_t id) const {
  const auto at = std::lower_bound(added_.begin(), added_.end(), id,
                                   [](const AddedToken& token, int32_t i) { return token.id < i; });
  return at != added_.end() && at->id == id;
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

void Vocabulary::save(const Path& vocab_txt) const {
  write_file_atomically(vocab_txt, vocabulary_text(parts().tokens));
}

std::optional<VocabularyDifference> difference(const Vocabulary& a, const Vocabulary& b) {
  VocabularyDifference found;
  for (int32_t id = std::max(a.size(), b.size()) - 1; id >= 0; --id) {
    if (id < a.size() && id < b.size() && a.token(id) == b.token(id)) continue;
    found.first_id = id;
    ++found.ids;
  }
  if (found.ids == 0) return std::nullopt;
  return found;
}

}  // namespace onebit::text
