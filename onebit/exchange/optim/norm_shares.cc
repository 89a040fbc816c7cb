#include "onebit/exchange/optim/norm_shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::optim {

NormShares::NormShares(const comm::Buckets& buckets)
    : buckets_(buckets), shares_(static_cast<size_t>(buckets.count()), 0.0) {}

void NormShares::follow(std::span<const double> squares) {
  ONEBIT_INVARIANT(squares.size() == shares_.size());
  const double whole = std::accumulate(squares.begin(), squares.end(), 0.0);
  if (!(whole > 0)) return;
  ++steps_;
  const double weight = std::max(kWeight, 1.0 / static_cast<double>(steps_));
  for (size_t bucket = 0; bucket < shares_.size(); ++bucket) {
    shares_[bucket] += weight * (squares[bucket] / whole - shares_[bucket]);
  }
}

double NormShares::limit(int64_t bucket, double threshold) const {
  const double even = static_cast<double>(buckets_.range(bucket).elements()) /
                      static_cast<double>(buckets_.elements());
  return threshold * std::sqrt(std::max(shares_[static_cast<size_t>(bucket)], kFloor * even));
}

// All buckets except the first have the same size, which the start of the first determines.
Json NormShares::cut() const {
  return {buckets_.elements(), buckets_.range(0).begin};
}

Json NormShares::save() const {
  return {{"cut", cut()}, {"steps", steps_}, {"shares", shares_}};
}

void NormShares::load(const Json& state) {
  std::fill(shares_.begin(), shares_.end(), 0.0);
  steps_ = 0;
  if (!state.is_object() || state.at("cut") != cut()) return;
  shares_ = state.at("shares").get<std::vector<double>>();
  steps_ = state.at("steps").get<int64_t>();
  ONEBIT_INVARIANT(shares_.size() == static_cast<size_t>(buckets_.count()));
}

}  // namespace onebit::optim
