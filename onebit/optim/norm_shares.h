// How the squared norm of the gradient is spread over the buckets of its exchange, so that a bucket
// can be clipped before the others exist.
//
// Clipping by the norm of the whole needs all of the gradient, so nothing could leave during the
// backward pass. A bucket whose norm is usually share_b of the whole, in squares, may be as large
// as threshold * sqrt(share_b): when all buckets grow together that is clipping by the norm of the
// whole, a bucket that grows alone is held in the very step, and the whole never exceeds the
// threshold by more than the floor below lets it. A share is the mean of the first steps, then a
// running mean of weight 0.02 of norm_b^2 / sum of norm^2, before clipping: after it, a share would
// stay where the limit keeps it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/base/json_fwd.h"
#include "onebit/comm/bucket.h"

namespace onebit::optim {

class NormShares {
 public:
  static constexpr double kWeight = 0.02;
  // Steps that must have been seen before a limit is made of a share.
  static constexpr int64_t kFewestSteps = 10;
  // A bucket that had no gradient so far may still get one: of the share it would have if squares
  // were spread evenly, it keeps this much.
  static constexpr double kFloor = 0.01;

  explicit NormShares(const comm::Buckets& buckets);

  const comm::Buckets& buckets() const { return buckets_; }
  bool known() const { return steps_ >= kFewestSteps; }
  int64_t steps_missing() const { return known() ? 0 : kFewestSteps - steps_; }

  // The squares of one step, a number a bucket, the same on every rank. All zero: no step.
  void follow(std::span<const double> squares);
  // What norm a bucket may have where the whole may have `threshold`.
  double limit(int64_t bucket, double threshold) const;

  Json save() const;
  // Forgets what is known where the state is of other buckets, or of none.
  void load(const Json& state);

 private:
  Json cut() const;

  comm::Buckets buckets_;
  std::vector<double> shares_;
  int64_t steps_ = 0;
};

}  // namespace onebit::optim
