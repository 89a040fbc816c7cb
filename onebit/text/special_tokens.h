// The five tokens that every BERT vocabulary has and that represent no text.
#pragma once

#include <array>
#include <string_view>

namespace onebit::text {

inline constexpr std::string_view kPadToken = "[PAD]";
inline constexpr std::string_view kUnknownToken = "[UNK]";
inline constexpr std::string_view kClsToken = "[CLS]";
inline constexpr std::string_view kSepToken = "[SEP]";
inline constexpr std::string_view kMaskToken = "[MASK]";

// In the order in which a trained vocabulary begins.
inline constexpr std::array<std::string_view, 5> kSpecialTokens = {
    kPadToken, kUnknownToken, kClsToken, kSepToken, kMaskToken};

// The special token at the front of `text`, or empty. They are recognised anywhere in a text, in
// this spelling only.
inline std::string_view special_token_at(std::string_view text) {
  for (const std::string_view token : kSpecialTokens) {
    if (text.starts_with(token)) return token;
  }
  return {};
}

}  // namespace onebit::text
