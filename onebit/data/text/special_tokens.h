// The five tokens that every BERT vocabulary has and that represent no text.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace onebit::text {

inline constexpr std::string_view kPadToken = "[PAD]";
inline constexpr std::string_view kUnknownToken = "[UNK]";
inline constexpr std::string_view kClsToken = "[CLS]";
inline constexpr std::string_view kSepToken = "[SEP]";
inline constexpr std::string_view kMaskToken = "[MASK]";

// In the order of their ids in a trained vocabulary.
inline constexpr std::array<std::string_view, 5> kSpecialTokens = {
    kPadToken, kUnknownToken, kClsToken, kSepToken, kMaskToken};

// What a tokenizer calls them.
struct SpecialNames {
  std::string unknown{kUnknownToken}, sep{kSepToken}, pad{kPadToken}, cls{kClsToken},
      mask{kMaskToken};

  bool operator==(const SpecialNames&) const = default;
};

// Returns the special token at the front of `text`, or an empty view. Special tokens are recognised
// anywhere in a text, but only in this spelling.
inline std::string_view special_token_at(std::string_view text) {
  for (const std::string_view token : kSpecialTokens) {
    if (text.starts_with(token)) return token;
  }
  return {};
}

}  // namespace onebit::text
