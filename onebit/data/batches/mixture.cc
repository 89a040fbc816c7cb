#include "onebit/data/batches/mixture.h"

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/error.h"

namespace onebit::batches {
namespace {

constexpr double kOne = 4294967296.0;

// floor(value * share / 2^32) without overflow.
uint64_t part_of(uint64_t value, uint64_t share) {
  return (value >> 32) * share + (((value & 0xFFFFFFFFu) * share) >> 32);
}

}  // namespace

Mixture::Mixture(const std::vector<double>& weights) {
  require(!weights.empty(), "no data source was given");
  double rest = 0;
  for (const double weight : weights) {
    require(std::isfinite(weight) && weight > 0, "the weight of a source is {}: it must be above 0",
            weight);
    rest += weight;
  }
  require(std::isfinite(rest),
          "the weights of the sources add up to more than a number can hold: give smaller ones");
  for (const double weight : weights) {
    share_.push_back(static_cast<uint64_t>(std::llround(std::min(weight / rest, 1.0) * kOne)));
    rest -= weight;
  }
  share_.back() = static_cast<uint64_t>(kOne);
}

uint64_t Mixture::count(size_t source, uint64_t samples) const {
  uint64_t rest = samples;
  for (size_t i = 0; i < source; ++i) rest -= part_of(rest, share_[i]);
  return part_of(rest, share_[source]);
}

Mixture::Place Mixture::place(uint64_t sample) const {
  uint64_t rest = sample;
  for (size_t source = 0;; ++source) {
    const uint64_t before = part_of(rest, share_[source]);
    if (part_of(rest + 1, share_[source]) > before) return {source, before};
    rest -= before;
  }
}

}  // namespace onebit::batches
