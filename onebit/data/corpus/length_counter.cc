#include "onebit/data/corpus/length_counter.h"

#include <algorithm>
#include <bit>

namespace onebit::corpus {

void LengthCounter::add(uint64_t length) {
  if (length < short_.size()) {
    ++short_[length];
  } else {
    ++long_[length];
  }
  ++count_;
  sum_ += length;
}

LengthStatistics LengthCounter::statistics() const {
  LengthStatistics found;
  found.mean = static_cast<double>(sum_) / static_cast<double>(count_);
  uint64_t before = 0;
  const auto take = [&](uint64_t length, uint64_t count) {
    if (count == 0) return;
    const auto bin = static_cast<size_t>(std::bit_width(length) - 1);
    found.histogram.resize(std::max(found.histogram.size(), bin + 1));
    found.histogram[bin] += count;
    if (before < (count_ + 1) / 2) found.median = length;
    before += count;
    found.longest = length;
  };
  for (uint64_t length = 0; length < short_.size(); ++length) take(length, short_[length]);
  for (const auto& [length, count] : long_) take(length, count);
  return found;
}

}  // namespace onebit::corpus
