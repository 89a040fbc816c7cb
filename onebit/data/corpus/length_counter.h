// Statistics of lengths: mean, median, longest, histogram.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace onebit::corpus {

// Statistics of at least one length.
struct LengthStatistics {
  double mean = 0;
  uint64_t median = 0;  // the lower of the two middle ones
  uint64_t longest = 0;
  std::vector<uint64_t> histogram;  // at i: lengths in [2^i, 2^(i+1))
};

// Counts lengths. Nearly all lengths are short, and few distinct long ones occur.
class LengthCounter {
 public:
  void add(uint64_t length);
  // Requires at least one length.
  LengthStatistics statistics() const;

 private:
  std::vector<uint64_t> short_ = std::vector<uint64_t>(4096);
  std::map<uint64_t, uint64_t> long_;
  uint64_t count_ = 0, sum_ = 0;
};

}  // namespace onebit::corpus
