#include "onebit/data/batches/epoch_index.h"

#include <algorithm>

#include "onebit/data/batches/example_builder.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::batches {
namespace {

// Finding a pair walks from the entry before it, over at most about so many sentences and pairs.
constexpr uint64_t kEntrySentences = 256, kEntryPairs = 256;

// The tokens of the walk's text that the example made from `pair` contains.
uint64_t read_tokens(PairWalk& walk, const corpus::TokenStore& store, const Pair& pair,
                     const PairOptions& options) {
  const uint64_t begin = walk.pieces().token(pair.a_begin);
  TokenRange a{begin, walk.pieces().token(pair.a_end)};
  TokenRange b{a.end, walk.pieces().token(pair.b_end)};
  if (options.next_sentence && b.size() == 0) {
    const auto mean = static_cast<int64_t>(store.tokens() / store.sentences());
    const int64_t random = std::max(std::min(mean, options.most_text_tokens()),
                                    std::max<int64_t>(pair.target - a.size(), 1));
    b.end += static_cast<uint64_t>(random);
  }
  const Dropped dropped = dropped_tokens(options.most_text_tokens(), a, b);
  const int64_t kept = a.size() - dropped.from_a;
  return static_cast<uint64_t>(pair.random_next ? kept : kept + b.size() - dropped.from_b);
}

}  // namespace

EpochIndex::EpochIndex(const corpus::TokenStore& store, const PairWalkOptions& options, int threads)
    : options_(options) {
  // Divides the text at document boundaries into parts with about equal numbers of sentences.
  const auto parts = static_cast<uint64_t>(std::max(threads, 1));
  std::vector<uint64_t> bounds(parts + 1, store.documents());
  for (uint64_t part = 0; part < parts; ++part) {
    bounds[part] = part == 0 ? 0 : store.document_of(store.sentences() / parts * part);
  }
  std::vector<std::vector<Entry>> entries(parts);
  std::vector<EpochFigures> figures(parts);
  parallel_for(threads, static_cast<int64_t>(parts), 1, [&](int64_t begin, int64_t end) {
    for (auto part = static_cast<size_t>(begin); part < static_cast<size_t>(end); ++part) {
      count(store, bounds[part], bounds[part + 1], entries[part], figures[part]);
    }
  });
  for (size_t part = 0; part < parts; ++part) {
    for (Entry& entry : entries[part]) entry.first_number += figures_.examples;
    entries_.insert(entries_.end(), entries[part].begin(), entries[part].end());
    figures_.add(figures[part]);
  }
  order_.emplace(figures_.examples, options_.epoch_seed);
}

void EpochIndex::count(const corpus::TokenStore& store, uint64_t document_begin,
                       uint64_t document_end, std::vector<Entry>& entries,
                       EpochFigures& figures) const {
  if (document_begin == document_end) return;
  const uint64_t first = store.document_begin(document_begin),
                 last = store.document_begin(document_end);
  PairWalk walk(store, options_, document_begin, {first});
  for (uint64_t sentence = first; sentence < last; ++sentence) {
    figures.parts += walk.pieces().count(sentence);
    if (!walk.pieces().is_cut(sentence)) continue;
    figures.cut_tokens += store.sentence_begin(sentence + 1) - store.sentence_begin(sentence);
  }
  figures.tokens = store.sentence_begin(last) - store.sentence_begin(first);
  uint64_t next_sentence = 0, next_pair = 0;
  while (!walk.done(document_end)) {
    if (walk.at_visit() &&
        (walk.place().sentence >= next_sentence || figures.examples >= next_pair)) {
      entries.push_back({figures.examples, walk.place(), walk.document()});
      next_sentence = walk.place().sentence + kEntrySentences;
      next_pair = figures.examples + kEntryPairs;
    }
    const Pair pair = walk.next();
    ++figures.examples;
    figures.could_continue += options_.pairs.next_sentence && pair.could_continue ? 1 : 0;
    figures.continue_text += options_.pairs.next_sentence && !pair.random_next ? 1 : 0;
    figures.read_tokens += read_tokens(walk, store, pair, options_.pairs);
  }
}

Pair EpochIndex::find(const corpus::TokenStore& store, uint64_t index, uint64_t* number) const {
  const uint64_t wanted = (*order_)(index);
  const auto after = std::upper_bound(
      entries_.begin(), entries_.end(), wanted,
      [](uint64_t value, const Entry& entry) { return value < entry.first_number; });
  ONEBIT_INVARIANT(after != entries_.begin());
  const Entry& entry = *std::prev(after);
  PairWalk walk(store, options_, entry.document, entry.place);
  for (uint64_t skipped = entry.first_number; skipped < wanted; ++skipped) walk.next();
  *number = wanted;
  return walk.next();
}

}  // namespace onebit::batches
