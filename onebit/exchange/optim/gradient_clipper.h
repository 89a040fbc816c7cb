// The norm of the gradient, agreed on by all ranks, and the clip coefficient from it.
//
// Averaged gradients: the norm of the average. Local gradients (compressed phase): the average is
// not known before the exchange, so its norm is estimated as ratio * rms over ranks of the local
// norms. `ratio`, from 1 / sqrt(ranks) to 1, is measured over the steps that were observed in the
// warm-up (a running mean, weight 0.02, after 50) and then follows the optimizer's estimate
// (one_bit/noise_ratio.h), so a threshold tuned in the warm-up means the same in the whole run.
//
// When buckets are sent before the whole gradient is known, each has its own limit: from its usual
// share of the squared norm (NormShares), divided by the same ratio, since a rank's bucket holds
// its own gradient. Shares are measured on local gradients, in the warm-up as well as later.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::optim {

// How the squared norm of the gradient is distributed over the buckets of its exchange, so that a
// bucket can be clipped before the others exist.
//
// Clipping by the norm of the whole needs the whole gradient, so nothing could be sent during the
// backward pass. A bucket whose squared norm is usually share_b of the whole may be as large as
// threshold * sqrt(share_b): if all buckets grow together, this is clipping by the norm of the
// whole. A bucket that grows alone is limited in the same step, and the whole exceeds the threshold
// by no more than the least share below allows. A share is the mean of the first steps, then a
// running mean of weight 0.02 of norm_b^2 / sum of norm^2, before clipping: measured after it, a
// share could never grow beyond its limit.
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

namespace onebit::comm {

class Communicator;

}  // namespace onebit::comm

namespace onebit::optim {

struct GradientNorm {
  bool finite = true;       // on every rank
  double norm = 0;          // of the (estimated) average, unscaled, or 0 if not finite
  double coefficient = 1;   // min(1, threshold / norm)
  int first_bad_rank = -1;  // lowest rank whose gradient is not finite
};

class GradientClipper {
 public:
  // With a threshold of 0 nothing is clipped, but the ranks still agree on norms.
  explicit GradientClipper(double threshold);

  // Begins to track how the norm is spread over these buckets.
  void follow_buckets(const comm::Buckets& buckets) { shares_.emplace(buckets); }

  // During the warm-up of an optimizer that will need local gradients: `range` of this rank's
  // gradients in the flat buffer, before they are averaged. The calls of a step cover the whole
  // buffer once.
  void observe_local_gradients(Context&, ConstView gradients, Range range);

  // In the compressed phase local gradients are the gradients of `sources` nodes instead of ranks.
  void set_sources(int sources) { sources_ = sources; }

  // One collective of a few numbers. `gradients`: the whole flat buffer, multiplied by `unscale`
  // (1 / loss scale) when read. Of local ones `ranges` has what this rank counts (empty: all).
  GradientNorm agree(Context&, comm::Communicator&, ConstView gradients, GradientNeed,
                     double unscale = 1, std::span<const Range> ranges = {});

  // Compressed phase: sets the ratio that the optimizer measured (0: none yet), and the squares of
  // the buckets in a step with limits (empty: no limits).
  void follow(double ratio, std::span<const double> bucket_squares = {});

  double ratio() const { return ratio_; }
  // Without a measurement the ratio is assumed to be 1, as for gradients without noise.
  bool ratio_known() const { return measurements_ > 0; }
  // The largest norm of this rank's gradient in each bucket, as in StepInput. Empty if there is no
  // threshold or too few steps were measured. Valid until the next call.
  std::span<const double> norm_limits();
  // Steps that must still be measured before there are limits.
  int64_t steps_missing() const { return shares_ ? shares_->steps_missing() : 0; }
  // For another number of sources the share of noise in the average is kept instead of the ratio.
  Json save(int sources) const;
  void load(const Json&, int sources);

 private:
  // Adds the squares of a range to `by_bucket` if buckets are tracked, and returns their sum.
  double add_squares(Context&, ConstView gradients, Range range,
                     std::vector<double>& by_bucket) const;
  void measure_ratio(double norm_of_average, double rms_of_norms, int ranks);

  double threshold_;
  std::optional<NormShares> shares_;
  std::vector<double> limits_, observed_buckets_;
  double observed_square_ = 0;
  bool observed_ = false;
  int sources_ = 0;  // 0: the number of ranks
  double ratio_ = 1;
  int64_t measurements_ = 0;
};

// For the message about a non-finite gradient: "bert...weight[17] = nan", the first bad element in
// the buffer, or an empty string. If all are finite, the first that is too large for an optimizer
// once it has been multiplied by `gradient_scale`.
std::string first_non_finite(const ParameterTable&, double gradient_scale = 1);

}  // namespace onebit::optim
