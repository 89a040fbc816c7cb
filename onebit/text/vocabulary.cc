#include "onebit/text/vocabulary.h"

#include <array>
#include <utility>

#include "onebit/base/error.h"
#include "onebit/text/special_tokens.h"
#include "onebit/text/utf8.h"

namespace onebit::text {
namespace {

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) {
      line.remove_suffix(1);
    }
    lines.emplace_back(line);
  }
  return lines;
}

// FNV-1a over the tokens, each followed by a newline.
uint32_t checksum_of(const std::vector<std::string>& tokens) {
  uint32_t hash = 0x811C9DC5u;
  const auto add = [&](uint8_t byte) { hash = (hash ^ byte) * 0x01000193u; };
  for (const std::string& token : tokens) {
    for (const char c : token) add(static_cast<uint8_t>(c));
    add('\n');
  }
  return hash;
}

}  // namespace

TokenIds token_ids(const std::vector<std::string>& tokens, const std::string& source) {
  require(!tokens.empty(), "{}: contains no tokens; expected one token per line", source);
  TokenIds ids;
  ids.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    require(!token.empty(), "{}:{}: empty line; every line of a vocabulary is a token", source,
            i + 1);
    require(!first_invalid_utf8(token), "{}:{}: not UTF-8; convert the vocabulary", source, i + 1);
    const auto [place, inserted] = ids.emplace(token, static_cast<int32_t>(i));
    require(inserted, "{}:{}: token '{}' is already in line {}; remove one of them", source, i + 1,
            token, place->second + 1);
  }
  return ids;
}

std::vector<std::string> read_vocabulary_lines(const Path& vocab_txt) {
  std::vector<std::string> tokens = split_lines(read_file(vocab_txt));
  token_ids(tokens, vocab_txt.string());
  return tokens;
}

std::string vocabulary_text(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text.append(token).push_back('\n');
  return text;
}

Vocabulary Vocabulary::load(const Path& vocab_txt) {
  return from_tokens(split_lines(read_file(vocab_txt)), vocab_txt.string());
}

Vocabulary Vocabulary::from_tokens(std::vector<std::string> tokens, const std::string& source) {
  Vocabulary vocabulary;
  vocabulary.ids_ = token_ids(tokens, source);
  vocabulary.tokens_ = std::move(tokens);
  const auto special = [&](std::string_view token) {
    const auto id = vocabulary.find(token);
    require(id.has_value(), "{}: no {} among {} tokens; BERT needs it, add it as a line of its own",
            source, token, vocabulary.size());
    return *id;
  };
  vocabulary.unknown_id_ = special(kUnknownToken);
  vocabulary.cls_id_ = special(kClsToken);
  vocabulary.sep_id_ = special(kSepToken);
  vocabulary.mask_id_ = special(kMaskToken);
  vocabulary.pad_id_ = special(kPadToken);
  vocabulary.checksum_ = checksum_of(vocabulary.tokens_);
  return vocabulary;
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

void Vocabulary::save(const Path& vocab_txt) const {
  write_file_atomically(vocab_txt, vocabulary_text(tokens_));
}

}  // namespace onebit::text
