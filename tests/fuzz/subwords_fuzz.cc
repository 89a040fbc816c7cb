// A unigram model, byte pairs or WordPiece of any vocabulary split a text as their definitions say,
// written here without tables.
#include "onebit/data/text/subword_models.h"

#include <cstdlib>
#include <limits>
#include <map>

#include "onebit/data/text/utf8.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

namespace {

constexpr int32_t kUnknown = 0;
constexpr const char* kUnknownToken = "?unknown?";

struct Input {
  char kind = 0;
  std::vector<std::string> tokens{kUnknownToken};
  std::vector<double> scores{0};
  std::string word;
};

// Lines of tokens, each behind a byte that is its score. The last line is the word.
Input input_of(std::string_view text) {
  Input input;
  if (text.empty()) return input;
  input.kind = text[0];
  text.remove_prefix(1);
  std::map<std::string, bool> known{{kUnknownToken, true}};
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.size() < 2 || text::first_invalid_utf8(line.substr(1))) continue;
    if (!known.emplace(line.substr(1), true).second) continue;
    input.tokens.emplace_back(line.substr(1));
    input.scores.push_back(-static_cast<double>(static_cast<uint8_t>(line[0])) / 8);
  }
  // The unknown token itself would be one with unknown neighbours.
  const bool has_unknown = text.find(kUnknownToken) != std::string_view::npos;
  if (!has_unknown && !text::first_invalid_utf8(text)) input.word = text;
  return input;
}

std::vector<std::string> characters_of(std::string_view word) {
  std::vector<std::string> characters;
  while (!word.empty()) {
    const size_t size = text::decode_utf8(word).size_bytes;
    characters.emplace_back(word.substr(0, size));
    word.remove_prefix(size);
  }
  return characters;
}

// Pieces follow each other from the first byte to the last.
void require_cover(std::string_view word, const std::vector<text::Piece>& parts) {
  uint32_t at = 0;
  for (const text::Piece& part : parts) {
    if (part.begin != at || part.end <= part.begin) std::abort();
    at = part.end;
  }
  if (at != word.size()) std::abort();
}

// The best sum over all splits, where an unknown character costs 10 more than the rarest piece.
void check_unigram(const Input& input) {
  const text::Unigram model(input.tokens, input.scores, {.unknown_id = kUnknown});
  std::vector<text::Piece> parts;
  model.split(input.word, parts);
  require_cover(input.word, parts);
  const double unknown = *std::min_element(input.scores.begin(), input.scores.end()) - 10;
  std::map<std::string, double> scores;
  for (size_t id = 1; id < input.tokens.size(); ++id) scores[input.tokens[id]] = input.scores[id];
  const std::vector<std::string> characters = characters_of(input.word);
  std::vector<double> best(characters.size() + 1, -std::numeric_limits<double>::infinity());
  best[0] = 0;
  for (size_t begin = 0; begin < characters.size(); ++begin) {
    std::string piece;
    for (size_t end = begin; end < characters.size(); ++end) {
      piece += characters[end];
      const auto found = scores.find(piece);
      const bool is_single = end == begin;
      if (found == scores.end() && !is_single) continue;
      best[end + 1] =
          std::max(best[end + 1], best[begin] + (found == scores.end() ? unknown : found->second));
    }
  }
  double sum = 0;
  for (const text::Piece& part : parts) {
    const std::string text = input.word.substr(part.begin, part.end - part.begin);
    if (part.id == kUnknown) {
      sum += unknown * static_cast<double>(characters_of(text).size());
    } else if (input.tokens[static_cast<size_t>(part.id)] != text) {
      std::abort();
    } else {
      sum += input.scores[static_cast<size_t>(part.id)];
    }
  }
  // Unknown characters together may be a piece that is better than what was found.
  if (sum < best.back() - 1e-9) std::abort();
}

// The first merge in the list that fits anywhere, at its first place, until none fits.
void check_byte_pairs(const Input& input) {
  std::map<std::string, int32_t> ids;
  for (size_t id = 0; id < input.tokens.size(); ++id) {
    ids[input.tokens[id]] = static_cast<int32_t>(id);
  }
  std::vector<text::BytePairs::Merge> merges;
  for (const std::string& token : input.tokens) {
    const std::vector<std::string> characters = characters_of(token);
    std::string left;
    for (size_t cut = 1; cut < characters.size(); ++cut) {
      left += characters[cut - 1];
      const std::string right = token.substr(left.size());
      if (ids.contains(left) && ids.contains(right)) merges.emplace_back(left, right);
    }
  }
  const text::BytePairs model(input.tokens, merges, {.unknown_id = kUnknown});
  std::vector<text::Piece> parts;
  model.split(input.word, parts);
  require_cover(input.word, parts);
  std::vector<std::string> symbols;
  for (const std::string& character : characters_of(input.word)) {
    symbols.push_back(ids.contains(character) ? character : kUnknownToken);
  }
  for (bool merged = true; merged;) {
    merged = false;
    for (size_t rank = 0; rank < merges.size() && !merged; ++rank) {
      for (size_t i = 0; i + 1 < symbols.size() && !merged; ++i) {
        if (symbols[i] != merges[rank].first || symbols[i + 1] != merges[rank].second) continue;
        symbols[i] += symbols[i + 1];
        symbols.erase(symbols.begin() + static_cast<int64_t>(i) + 1);
        merged = true;
      }
    }
  }
  if (symbols.size() != parts.size()) std::abort();
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (ids.at(symbols[i]) != parts[i].id) std::abort();
  }
}

// The longest token at the front, then the longest ones with the prefix.
void check_word_pieces(const Input& input) {
  const text::WordPieces model(input.tokens, {.prefix = "#", .unknown_id = kUnknown});
  std::vector<text::Piece> parts;
  model.split(input.word, parts);
  std::map<std::string, int32_t> ids;
  for (size_t id = 0; id < input.tokens.size(); ++id) {
    ids[input.tokens[id]] = static_cast<int32_t>(id);
  }
  std::vector<int32_t> expected;
  for (size_t begin = 0; begin < input.word.size();) {
    size_t end = input.word.size();
    const auto token = [&] {
      return (begin > 0 ? "#" : "") + input.word.substr(begin, end - begin);
    };
    while (end > begin && !ids.contains(token())) --end;
    if (end == begin) {
      expected = {kUnknown};
      break;
    }
    expected.push_back(ids.at(token()));
    begin = end;
  }
  if (characters_of(input.word).size() > 100) expected = {kUnknown};
  if (expected.size() != parts.size()) std::abort();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].id != expected[i]) std::abort();
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 2048) return 0;  // the definitions are slow
  const Input input = input_of(text_of(data, size));
  if (input.word.empty()) return 0;
  switch (input.kind % 3) {
    case 0:
      check_unigram(input);
      break;
    case 1:
      check_byte_pairs(input);
      break;
    default:
      check_word_pieces(input);
  }
  return 0;
}
