#include "onebit/data/text/decoder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "onebit/data/text/pieces.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {
namespace {

using Tokens = std::vector<std::string>;

void replace(std::string& text, std::string_view pattern, std::string_view content) {
  if (pattern.empty()) return;
  for (size_t at = text.find(pattern); at != std::string::npos;
       at = text.find(pattern, at + content.size())) {
    text.replace(at, pattern.size(), content);
  }
}

// Removes blanks by rules of English, as BERT's decoder does.
void clean(std::string& token) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) replace(token, from, to);
}

std::string joined(const Tokens& tokens, std::string_view between) {
  std::string text;
  for (const std::string& token : tokens) {
    if (&token != &tokens.front()) text += between;
    text += token;
  }
  return text;
}

// Bytes that are not UTF-8 become U+FFFD, one for each maximal subpart.
std::string well_formed(const std::string& bytes) {
  if (!first_invalid_utf8(bytes)) return bytes;
  std::string text;
  for (const char32_t c : code_points(bytes)) append_utf8(c, text);
  return text;
}

// The byte of a token "<0x41>".
std::optional<char> byte_of(std::string_view token) {
  constexpr std::string_view kFront = "<0x";
  constexpr size_t kSize = 6;
  constexpr int kHexadecimal = 16;
  if (token.size() != kSize || !token.starts_with(kFront) || token.back() != '>') {
    return std::nullopt;
  }
  uint8_t byte = 0;
  const char *first = token.data() + kFront.size(), *last = token.data() + kSize - 1;
  const auto [end, error] = std::from_chars(first, last, byte, kHexadecimal);
  if (error != std::errc() || end != last) return std::nullopt;
  return static_cast<char>(byte);
}

void apply(const WordPieceDecoding& step, Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (i > 0 && token.starts_with(step.prefix)) {
      token.erase(0, step.prefix.size());
    } else if (i > 0) {
      token.insert(0, 1, ' ');
    }
    if (step.cleans) clean(token);
  }
}

// A token with another character stands for its own bytes.
void apply(const ByteLevelDecoding&, Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += bytes_of_symbols(token).value_or(token);
  tokens = {well_formed(bytes)};
}

void apply(const MetaspaceDecoding& step, Tokens& tokens) {
  for (std::string& token : tokens) {
    const bool drops = step.drops_first && &token == &tokens.front();
    replace(token, step.replacement, drops ? "" : " ");
  }
}

void apply(const SuffixDecoding& step, Tokens& tokens) {
  for (std::string& token : tokens) {
    replace(token, step.suffix, &token == &tokens.back() ? "" : " ");
  }
}

void apply(const ReplaceDecoding& step, Tokens& tokens) {
  for (std::string& token : tokens) replace(token, step.pattern, step.content);
}

void apply(const FuseDecoding&, Tokens& tokens) {
  tokens = {joined(tokens, "")};
}

void apply(const StripDecoding& step, Tokens& tokens) {
  for (std::string& token : tokens) {
    for (int64_t i = 0; i < step.start && token.starts_with(step.content); ++i) {
      token.erase(0, step.content.size());
    }
    for (int64_t i = 0; i < step.stop && token.ends_with(step.content); ++i) {
      token.resize(token.size() - step.content.size());
    }
  }
}

// Bytes that together are not UTF-8 become a U+FFFD each.
void apply(const ByteFallbackDecoding&, Tokens& tokens) {
  Tokens decoded;
  std::string bytes;
  const auto add_bytes = [&] {
    if (!bytes.empty() && !first_invalid_utf8(bytes)) {
      decoded.push_back(bytes);
    } else {
      std::string replacement;
      append_utf8(kReplacementCharacter, replacement);
      decoded.insert(decoded.end(), bytes.size(), replacement);
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = byte_of(token)) {
      bytes.push_back(*byte);
      continue;
    }
    add_bytes();
    decoded.push_back(std::move(token));
  }
  add_bytes();
  tokens = std::move(decoded);
}

}  // namespace

Decoder Decoder::refused(std::string reason, std::string source) {
  Decoder decoder({}, std::move(source));
  decoder.refusal_ = std::move(reason);
  return decoder;
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
  require(refusal_.empty(), "{}", refusal_);
  if (steps_.empty()) return joined(tokens, " ");
  for (const DecoderStep& step : steps_) {
    std::visit([&](const auto& one) { apply(one, tokens); }, step);
  }
  return joined(tokens, "");
}

}  // namespace onebit::text
