#include "onebit/data/epoch_index.h"

#include <algorithm>

#include "onebit/base/error.h"
#include "onebit/base/parallel_for.h"

namespace onebit::data {
namespace {

constexpr uint64_t kEntrySentences = 256;

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
  std::vector<uint64_t> examples(parts, 0);
  parallel_for(threads, static_cast<int64_t>(parts), 1, [&](int64_t begin, int64_t end) {
    for (auto part = static_cast<size_t>(begin); part < static_cast<size_t>(end); ++part) {
      count(store, bounds[part], bounds[part + 1], entries[part], examples[part]);
    }
  });
  for (size_t part = 0; part < parts; ++part) {
    for (Entry& entry : entries[part]) entry.first_number += examples_;
    entries_.insert(entries_.end(), entries[part].begin(), entries[part].end());
    examples_ += examples[part];
  }
  order_.emplace(examples_, options_.epoch_seed);
}

void EpochIndex::count(const corpus::TokenStore& store, uint64_t document_begin,
                       uint64_t document_end, std::vector<Entry>& entries,
                       uint64_t& examples) const {
  if (document_begin == document_end) return;
  PairWalk walk(store, options_, document_begin, store.document_begin(document_begin));
  uint64_t next_entry = 0;
  while (!walk.done(document_end)) {
    if (walk.at_visit() && walk.sentence() >= next_entry) {
      entries.push_back({examples, walk.sentence(), walk.document()});
      next_entry = walk.sentence() + kEntrySentences;
    }
    walk.next();
    ++examples;
  }
}

Pair EpochIndex::find(const corpus::TokenStore& store, uint64_t index, uint64_t* number) const {
  const uint64_t wanted = (*order_)(index);
  const auto after = std::upper_bound(
      entries_.begin(), entries_.end(), wanted,
      [](uint64_t value, const Entry& entry) { return value < entry.first_number; });
  ONEBIT_INVARIANT(after != entries_.begin());
  const Entry& entry = *std::prev(after);
  PairWalk walk(store, options_, entry.document, entry.sentence);
  for (uint64_t skipped = entry.first_number; skipped < wanted; ++skipped) walk.next();
  *number = wanted;
  return walk.next();
}

}  // namespace onebit::data
