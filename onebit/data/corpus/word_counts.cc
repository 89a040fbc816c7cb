#include "onebit/data/corpus/word_counts.h"

#include <limits>

#include "onebit/ground/base/error.h"

namespace onebit::corpus {

WordCounts::WordCounts() : slots_(size_t{1} << 12) {}

void WordCounts::add(std::string_view word, uint64_t hash, uint64_t times) {
  const size_t mask = slots_.size() - 1;
  size_t i = (hash >> 8) & mask;
  for (; slots_[i] != 0; i = (i + 1) & mask) {
    Place& place = places_[slots_[i] - 1];
    if (place.hash == hash && this->word(slots_[i] - 1) == word) {
      place.count += times;
      return;
    }
  }
  require(places_.size() < std::numeric_limits<uint32_t>::max() - 1,
          "more than {} different words: train the vocabulary on a part of the text",
          places_.size());
  places_.push_back({hash, arena_.size(), times, static_cast<uint32_t>(word.size())});
  arena_.append(word);
  slots_[i] = static_cast<uint32_t>(places_.size());
  if (2 * places_.size() > slots_.size()) grow();
}

void WordCounts::add(const WordCounts& other) {
  for (size_t i = 0; i < other.size(); ++i) {
    add(other.word(i), other.places_[i].hash, other.count(i));
  }
}

void WordCounts::grow() {
  slots_.assign(2 * slots_.size(), 0);
  const size_t mask = slots_.size() - 1;
  for (size_t p = 0; p < places_.size(); ++p) {
    size_t i = (places_[p].hash >> 8) & mask;
    while (slots_[i] != 0) i = (i + 1) & mask;
    slots_[i] = static_cast<uint32_t>(p + 1);
  }
}

}  // namespace onebit::corpus
