#include "onebit/apps/squad/answer_projection.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "onebit/data/text/basic_tokenizer.h"
#include "onebit/data/text/utf8.h"

namespace onebit::squad {
namespace {

std::u32string decoded(std::string_view utf8) {
  std::u32string text;
  while (!utf8.empty()) {
    const text::DecodedCharacter c = text::decode_utf8(utf8);
    text += c.code_point;
    utf8.remove_prefix(c.size_bytes);
  }
  return text;
}

std::u32string tokenized(std::string_view original, text::Casing casing) {
  std::vector<text::BasicWord> words;
  text::BasicTokenizer(casing).split(original, words);
  std::string joined;
  for (const text::BasicWord& word : words) {
    if (!joined.empty()) joined += ' ';
    joined += word.text;
  }
  return decoded(joined);
}

// The places of the non-space characters.
std::vector<size_t> places_in(const std::u32string& text) {
  std::vector<size_t> places;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != U' ') places.push_back(i);
  }
  return places;
}

// The place in the other text of the character at `place` in this one.
std::optional<size_t> aligned(size_t place, const std::vector<size_t>& from,
                              const std::vector<size_t>& to) {
  const auto found = std::lower_bound(from.begin(), from.end(), place);
  if (found == from.end() || *found != place) return std::nullopt;
  return to[static_cast<size_t>(found - from.begin())];
}

}  // namespace

std::string project_answer(std::string_view predicted, std::string_view original,
                           text::Casing casing) {
  const std::u32string wanted = decoded(predicted), tokens = tokenized(original, casing);
  const std::u32string source = decoded(original);
  const size_t begin = tokens.find(wanted);
  if (wanted.empty() || begin == std::u32string::npos) return std::string(original);
  const std::vector<size_t> in_tokens = places_in(tokens), in_source = places_in(source);
  if (in_tokens.size() != in_source.size()) return std::string(original);
  const auto first = aligned(begin, in_tokens, in_source);
  const auto last = aligned(begin + wanted.size() - 1, in_tokens, in_source);
  if (!first || !last) return std::string(original);
  std::string answer;
  for (size_t i = *first; i <= *last; ++i) text::append_utf8(source[i], answer);
  return answer;
}

}  // namespace onebit::squad
