// How long things are: mean, median, longest, histogram.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace onebit::corpus {

// Lengths of which there is at least one.
struct LengthStatistics {
  double mean = 0;
  uint64_t median = 0;  // the lower of two
  uint64_t longest = 0;
  std::vector<uint64_t> histogram;  // at i: those in [2^i, 2^(i+1))
};

// Counts lengths: nearly all are short, and few long ones are alike.
class LengthCounter {
 public:
  void add(uint64_t length);
  // Of at least one length.
  LengthStatistics statistics() const;

 private:
  std::vector<uint64_t> short_ = std::vector<uint64_t>(4096);
  std::map<uint64_t, uint64_t> long_;
  uint64_t count_ = 0, sum_ = 0;
};

}  // namespace onebit::corpus
