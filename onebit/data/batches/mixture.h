// Assigns samples to several sources by weight, evenly and without state: the number of samples
// from a source among the first s is a closed formula, so any sample is located directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onebit::batches {

class Mixture {
 public:
  Mixture() = default;
  // Weights must be above 0; their sum is arbitrary.
  explicit Mixture(const std::vector<double>& weights);

  struct Place {
    size_t source;
    uint64_t counter;  // number of earlier samples from this source

    bool operator==(const Place&) const = default;
  };
  Place place(uint64_t sample) const;
  // The number of samples from `source` among the first `samples`; it deviates from the exact share
  // by less than the number of sources (and by the rounding of shares to 32 bits).
  uint64_t count(size_t source, uint64_t samples) const;

 private:
  // The share of source i among sources i, i + 1, ..., in units of 1 / 2^32.
  std::vector<uint64_t> share_;
};

}  // namespace onebit::batches
