// How the squared norm of the gradient is distributed over the buckets of its exchange, so that a
// bucket can be clipped before the others exist.
//
// Clipping by the norm of the whole needs the whole gradient, so nothing could be sent during the
// backward pass. A bucket whose squared norm is usually share_b of the whole may be as large as
// threshold * sqrt(share_b): if all buckets grow together, this is clipping by the norm of the
// whole; a bucket that grows alone is limited in the same step, and the whole exceeds the threshold
// by no more than the least share below allows. A share is the mean of the first steps, then a
// running mean of weight 0.02 of norm_b^2 / sum of norm^2, before clipping: measured after it, a
// share could never grow beyond its limit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::optim {

class NormShares {
 public:
  static constexpr double kWeight = 0.02;
  // Steps that must be measured before a limit is computed from a share.
  static constexpr int64_t kFewestSteps = 10;
  // A bucket without any gradient so far may still get one: its share is at least this fraction of
  // an equal share of the squares.
  static constexpr double kFloor = 0.01;

  explicit NormShares(const comm::Buckets& buckets);

  const comm::Buckets& buckets() const { return buckets_; }
  bool known() const { return steps_ >= kFewestSteps; }
  int64_t steps_missing() const { return known() ? 0 : kFewestSteps - steps_; }

  // Adds the squares of one step, one per bucket, the same on every rank. A step whose squares are
  // all zero is ignored.
  void follow(std::span<const double> squares);
  // The largest norm of a bucket if the norm of the whole may be `threshold`.
  double limit(int64_t bucket, double threshold) const;

  Json save() const;
  // Starts from zero if the saved state is of other buckets or has no shares.
  void load(const Json& state);

 private:
  Json cut() const;

  comm::Buckets buckets_;
  std::vector<double> shares_;
  int64_t steps_ = 0;
};

}  // namespace onebit::optim
