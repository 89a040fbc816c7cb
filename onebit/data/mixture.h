// Deals samples to several sources by weight, evenly and without memory: how many of the first s
// samples came from a source is a closed formula, so any sample is found at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onebit::data {

class Mixture {
 public:
  Mixture() = default;
  // Weights above 0, any sum.
  explicit Mixture(const std::vector<double>& weights);

  struct Place {
    size_t source;
    uint64_t counter;  // how many samples of this source came before

    bool operator==(const Place&) const = default;
  };
  Place place(uint64_t sample) const;
  // Samples of `source` among the first `samples`: off its share by less than the number of sources
  // (and by the rounding of shares to 32 bits).
  uint64_t count(size_t source, uint64_t samples) const;

 private:
  // Share of source i among sources i, i + 1, ..., in 1 / 2^32.
  std::vector<uint64_t> share_;
};

}  // namespace onebit::data
