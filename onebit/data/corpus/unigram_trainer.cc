#include "onebit/data/corpus/unigram_trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "onebit/data/corpus/repeated_substrings.h"
#include "onebit/data/text/pieces.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::corpus {
namespace {

// sentencepiece's settings.
constexpr size_t kSeedPieces = 1'000'000, kLongestPiece = 16, kFewCharacters = 1000;
constexpr double kCoverage = 0.9995, kKeptByRound = 0.75, kLeastExpected = 0.5;
constexpr int kFitsByRound = 2;
// The words are fitted in this many parts, whose sums are added in order.
constexpr int64_t kParts = 16;

constexpr double kNever = -std::numeric_limits<double>::infinity();

std::string utf8_of(std::u32string_view characters) {
  std::string result;
  for (const char32_t c : characters) text::append_utf8(c, result);
  return result;
}

// log(exp(a) + exp(b))
double log_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNever ? a : a + std::log1p(std::exp(b - a));
}

// The derivative of log gamma, by its recurrence and asymptotic series (Abramowitz and Stegun
// 6.3.18).
double digamma(double x) {
  double result = 0;
  for (; x < 7; x += 1) result -= 1 / x;
  x -= 0.5;
  const double y = 1 / (x * x);
  return result + std::log(x) + y * (1.0 / 24 - y * (7.0 / 960 - y * (31.0 / 8064)));
}

using Word = SpelledWord;

std::map<char32_t, uint64_t> count_characters(const std::vector<Word>& words) {
  std::map<char32_t, uint64_t> counts;
  for (const Word& word : words) {
    for (const char32_t c : word.characters) counts[c] += word.count;
  }
  return counts;
}

// The characters that become pieces, and how often they occur.
std::map<char32_t, uint64_t> alphabet_of(const std::vector<Word>& words) {
  const std::map<char32_t, uint64_t> counts = count_characters(words);
  std::vector<std::pair<char32_t, uint64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  double all = 0, kept = 0;
  for (const auto& entry : sorted) all += static_cast<double>(entry.second);
  std::map<char32_t, uint64_t> alphabet;
  for (const auto& [character, count] : sorted) {
    if (alphabet.size() >= kFewCharacters && kept >= kCoverage * all) break;
    kept += static_cast<double>(count);
    alphabet.emplace(character, count);
  }
  return alphabet;
}

// Cuts words at characters that are no pieces, and joins equal ones.
std::vector<Word> spelled_with(const std::map<char32_t, uint64_t>& alphabet,
                               const std::vector<Word>& words) {
  std::map<std::u32string, uint64_t> parts;
  for (const Word& word : words) {
    std::u32string part;
    const auto end_part = [&] {
      if (!part.empty()) parts[part] += word.count;
      part.clear();
    };
    for (const char32_t c : word.characters) {
      if (alphabet.contains(c)) {
        part.push_back(c);
      } else {
        end_part();
      }
    }
    end_part();
  }
  std::vector<Word> result;
  for (auto& [characters, count] : parts) result.push_back({characters, count});
  return result;
}

// Characters, and repeated substrings with many characters in all their occurrences.
std::vector<UnigramPiece> seed_pieces(const std::vector<Word>& words,
                                      const std::map<char32_t, uint64_t>& alphabet) {
  const RepeatedSubstrings repeated(words, kLongestPiece);
  std::vector<RepeatedSubstrings::Found> best = repeated.found();
  std::ranges::sort(best, [&](const auto& a, const auto& b) {
    const uint64_t in_a = a.count * a.size, in_b = b.count * b.size;
    return in_a != in_b ? in_a > in_b : repeated.text_of(a) < repeated.text_of(b);
  });
  if (best.size() > kSeedPieces) best.resize(kSeedPieces);
  std::vector<UnigramPiece> pieces;
  double sum = 0;
  const auto add = [&](std::u32string_view piece, uint64_t characters) {
    pieces.push_back({utf8_of(piece), static_cast<double>(characters)});
    sum += pieces.back().score;
  };
  for (const auto& [character, count] : alphabet) add({&character, 1}, count);
  for (const auto& found : best) add(repeated.text_of(found), found.count * found.size);
  for (UnigramPiece& piece : pieces) piece.score = std::log(piece.score / sum);
  return pieces;
}

// The ways to split a word into pieces.
class Lattice {
 public:
  explicit Lattice(const std::vector<UnigramPiece>& pieces)
      : pieces_(pieces), trie_(trie_of(pieces)) {}

  // Adds to `expected` how often each piece occurs in a random split of the word, times `weight`.
  // Returns the logarithm of the word's probability.
  double expect(std::string_view word, double weight, std::vector<double>& expected) const {
    std::vector<double> before(word.size() + 1, kNever), after(word.size() + 1, kNever);
    before[0] = after[word.size()] = 0;
    for_each_edge(word, [&](size_t begin, size_t end, int32_t piece) {
      before[end] = log_sum(before[end], before[begin] + pieces_[piece].score);
    });
    const double all = before[word.size()];
    if (all == kNever) return 0;
    std::vector<Edge> edges;
    for_each_edge(word, [&](size_t begin, size_t end, int32_t piece) {
      edges.push_back({begin, end, piece});
    });
    for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
      after[edge->begin] =
          log_sum(after[edge->begin], after[edge->end] + pieces_[edge->piece].score);
    }
    for (const Edge& edge : edges) {
      const double chance = before[edge.begin] + pieces_[edge.piece].score + after[edge.end] - all;
      if (chance > kNever) expected[edge.piece] += weight * std::exp(chance);
    }
    return all;
  }

  // The pieces of the best split, without one that is the whole word if `without_whole`. Empty if
  // there is none.
  std::vector<int32_t> best(std::string_view word, bool without_whole) const {
    struct Step {
      double score = kNever;
      size_t begin = 0;
      int32_t piece = -1;
    };
    std::vector<Step> steps(word.size() + 1);
    steps[0].score = 0;
    for_each_edge(word, [&](size_t begin, size_t end, int32_t piece) {
      if (without_whole && end - begin == word.size()) return;
      const double score = steps[begin].score + pieces_[piece].score;
      if (score > steps[end].score) steps[end] = {score, begin, piece};
    });
    std::vector<int32_t> found;
    if (steps.back().piece < 0) return found;
    for (size_t at = word.size(); at > 0; at = steps[at].begin) found.push_back(steps[at].piece);
    return found;
  }

 private:
  struct Edge {
    size_t begin, end;
    int32_t piece;
  };

  static text::PieceTrie trie_of(const std::vector<UnigramPiece>& pieces) {
    uint64_t bytes = 0;
    for (const UnigramPiece& piece : pieces) bytes += piece.text.size();
    text::PieceTrie trie(1, bytes);
    for (size_t i = 0; i < pieces.size(); ++i) {
      trie.insert(pieces[i].text, 0, static_cast<int32_t>(i));
    }
    trie.shrink();
    return trie;
  }

  // In the order of their beginnings. Pieces are whole characters, so edges begin at characters.
  template <typename OnEdge>
  void for_each_edge(std::string_view word, const OnEdge& on_edge) const {
    for (size_t begin = 0; begin < word.size(); ++begin) {
      uint32_t node = 0;
      for (size_t end = begin; end < word.size();) {
        node = trie_.next(node, word[end++]);
        if (node == text::PieceTrie::kNone) break;
        if (const int32_t piece = trie_.accepted(node); piece >= 0) on_edge(begin, end, piece);
      }
    }
  }

  const std::vector<UnigramPiece>& pieces_;
  text::PieceTrie trie_;
};

class Model {
 public:
  Model(const std::vector<Word>& words, std::vector<UnigramPiece> pieces,
        const std::map<char32_t, uint64_t>& alphabet, int threads)
      : pieces_(std::move(pieces)), threads_(threads) {
    for (const Word& word : words) {
      words_.emplace_back(utf8_of(word.characters), static_cast<double>(word.count));
    }
    for (const auto& entry : alphabet) characters_.insert(utf8_of({&entry.first, 1}));
  }

  size_t size() const { return pieces_.size(); }

  // One step of expectation maximisation. The prior makes rare pieces rarer (Kudo's sparse one).
  void fit() {
    const Lattice lattice(pieces_);
    const std::vector<double> expected =
        sum_over_words([&](const auto& word, std::vector<double>& sums) {
          lattice.expect(word.first, word.second, sums);
        });
    std::vector<UnigramPiece> kept;
    double sum = 0;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const bool is_character = characters_.contains(pieces_[i].text);
      if (expected[i] < kLeastExpected && !is_character) continue;
      const double count = std::max(expected[i], kLeastExpected);
      kept.push_back({pieces_[i].text, count});
      sum += count;
    }
    const double all = digamma(sum);
    for (UnigramPiece& piece : kept) piece.score = digamma(piece.score) - all;
    pieces_ = std::move(kept);
  }

  // Keeps the pieces without which the text's likelihood would lose most.
  void prune(size_t wanted) {
    const Lattice lattice(pieces_);
    const std::vector<double> used =
        sum_over_words([&](const auto& word, std::vector<double>& sums) {
          for (const int32_t piece : lattice.best(word.first, false)) sums[piece] += word.second;
        });
    double sum = 0;
    for (const double count : used) sum += count;
    std::vector<double> losses(pieces_.size());
    parallel_for(threads_, static_cast<int64_t>(pieces_.size()), 1024,
                 [&](int64_t begin, int64_t end) {
                   for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
                     losses[i] = loss_without(i, lattice, used, sum);
                   }
                 });
    keep_largest(losses, wanted);
  }

  // The characters, and the best of the others. Best first.
  std::vector<UnigramPiece> finish(size_t most_pieces) {
    std::vector<double> scores;
    for (const UnigramPiece& piece : pieces_) {
      const bool is_character = characters_.contains(piece.text);
      scores.push_back(is_character ? std::numeric_limits<double>::infinity() : piece.score);
    }
    keep_largest(scores, most_pieces);
    std::ranges::sort(pieces_, [](const UnigramPiece& a, const UnigramPiece& b) {
      return a.score != b.score ? a.score > b.score : a.text < b.text;
    });
    return std::move(pieces_);
  }

 private:
  template <typename OnWord>
  std::vector<double> sum_over_words(const OnWord& on_word) const {
    std::vector<std::vector<double>> parts(kParts, std::vector<double>(pieces_.size()));
    const auto words = static_cast<int64_t>(words_.size());
    parallel_for(threads_, kParts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        for (int64_t i = part * words / kParts; i < (part + 1) * words / kParts; ++i) {
          on_word(words_[static_cast<size_t>(i)], parts[static_cast<size_t>(part)]);
        }
      }
    });
    for (size_t part = 1; part < parts.size(); ++part) {
      for (size_t i = 0; i < pieces_.size(); ++i) parts[0][i] += parts[part][i];
    }
    return std::move(parts[0]);
  }

  // How much the mean log likelihood falls if other pieces take the place of this one.
  double loss_without(size_t i, const Lattice& lattice, const std::vector<double>& used,
                      double sum) const {
    if (characters_.contains(pieces_[i].text)) return std::numeric_limits<double>::infinity();
    const std::vector<int32_t> others = lattice.best(pieces_[i].text, true);
    if (others.empty()) return std::numeric_limits<double>::infinity();
    double score_of_others = 0;
    for (const int32_t other : others) score_of_others += pieces_[other].score;
    // A piece that is split in its own best split is never used.
    if (score_of_others >= pieces_[i].score || used[i] == 0) return -1;
    const double sum_without = sum + used[i] * (static_cast<double>(others.size()) - 1);
    double without = 0;
    for (const int32_t other : others) without += std::log((used[other] + used[i]) / sum_without);
    return used[i] / sum * (std::log(used[i] / sum) - without);
  }

  // Keeps `count` pieces in their order.
  void keep_largest(const std::vector<double>& values, size_t count) {
    std::vector<size_t> order(pieces_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](size_t a, size_t b) {
      return values[a] != values[b] ? values[a] > values[b] : pieces_[a].text < pieces_[b].text;
    });
    order.resize(std::min(order.size(), count));
    std::ranges::sort(order);
    std::vector<UnigramPiece> kept;
    for (const size_t i : order) kept.push_back(std::move(pieces_[i]));
    pieces_ = std::move(kept);
  }

  std::vector<std::pair<std::string, double>> words_;
  std::vector<UnigramPiece> pieces_;
  std::set<std::string> characters_;
  int threads_;
};

}  // namespace

std::vector<UnigramPiece> train_unigram(std::vector<WeightedWord> given, size_t most_pieces,
                                        int threads,
                                        const std::function<void(size_t pieces)>& report) {
  std::vector<Word> words;
  words.reserve(given.size());
  for (const WeightedWord& word : given)
    words.push_back({text::code_points(word.text), word.count});
  const std::map<char32_t, uint64_t> alphabet = alphabet_of(words);
  require(!alphabet.empty(), "no words to train a vocabulary on: the text is empty");
  require(alphabet.size() <= most_pieces,
          "the text has {} characters, and the vocabulary has room for {} pieces: make it larger",
          alphabet.size(), most_pieces);
  words = spelled_with(alphabet, words);
  Model model(words, seed_pieces(words, alphabet), alphabet, threads);
  report(model.size());
  // Some more than wanted are left for the last choice.
  const size_t wanted = most_pieces + most_pieces / 10;
  while (true) {
    for (int i = 0; i < kFitsByRound; ++i) model.fit();
    if (model.size() <= wanted) break;
    const auto fewer = static_cast<size_t>(kKeptByRound * static_cast<double>(model.size()));
    model.prune(std::max(fewer, wanted));
    report(model.size());
  }
  return model.finish(most_pieces);
}

}  // namespace onebit::corpus
