#include "onebit/exchange/optim/gradient_clipper.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/device/profile.h"
#include "onebit/math/ops/reduce.h"
#include "onebit/math/updates/onebit_adam_update.h"

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

namespace {

// The vector that the ranks sum: the first three numbers, then one flag per rank, then the squares
// of local gradients in the tracked buckets.
enum Slot : size_t { kSquare, kObservedSquare, kObservers, kFlags };

constexpr double kRatioWeight = 0.02;

// The norm of the average over the root mean square of the norms of `sources`, which are averages
// of some of the `measured`, from the share of noise in the latter.
double ratio_of(double ratio, int measured, int sources) {
  const double share = std::clamp((1 / (ratio * ratio) - 1) / (measured - 1), 0.0, 1.0);
  return 1 / std::sqrt(1 + share * (sources - 1));
}

}  // namespace

GradientClipper::GradientClipper(double threshold) : threshold_(threshold) {
  require(threshold >= 0 && std::isfinite(threshold),
          "gradient_clipping is {}; it must be the largest allowed norm, or 0 for no clipping",
          threshold);
}

double GradientClipper::add_squares(Context& context, ConstView gradients, Range range,
                                    std::vector<double>& by_bucket) const {
  if (!shares_) return ops::squared_norm(context, gradients.rows(range.begin, range.end));
  const comm::Buckets& buckets = shares_->buckets();
  by_bucket.resize(static_cast<size_t>(buckets.count()), 0.0);
  double sum = 0;
  for (int64_t end = range.end; end > range.begin;) {
    const int64_t bucket = buckets.bucket_of(end - 1);
    const int64_t begin = std::max(buckets.range(bucket).begin, range.begin);
    const double square = ops::squared_norm(context, gradients.rows(begin, end));
    by_bucket[static_cast<size_t>(bucket)] += square;
    sum += square;
    end = begin;
  }
  return sum;
}

void GradientClipper::observe_local_gradients(Context& context, ConstView gradients, Range range) {
  observed_square_ += add_squares(context, gradients, range, observed_buckets_);
  observed_ = true;
}

GradientNorm GradientClipper::agree(Context& context, comm::Communicator& communicator,
                                    ConstView gradients, GradientNeed need, double unscale,
                                    std::span<const Range> ranges) {
  const int world = communicator.world_size();
  const Range all{0, gradients.elements()};
  if (ranges.empty()) ranges = std::span(&all, 1);
  const bool local = need == GradientNeed::kLocalOnly;
  std::vector<double> squares = std::exchange(observed_buckets_, {});
  if (local) squares.clear();
  double square = local ? 0 : ops::squared_norm(context, gradients);
  for (size_t at = 0; local && at < ranges.size(); ++at) {
    square += add_squares(context, gradients, ranges[at], squares);
  }
  std::vector<double> sums(kFlags + static_cast<size_t>(world), 0.0);
  if (std::isfinite(square)) {
    sums[kSquare] = square;
  } else {
    sums[kFlags + static_cast<size_t>(communicator.rank())] = 1;
  }
  if (observed_ && std::isfinite(observed_square_)) {
    sums[kObservedSquare] = observed_square_;
    sums[kObservers] = 1;
  }
  const size_t buckets = sums.size();
  if (shares_) sums.resize(buckets + static_cast<size_t>(shares_->buckets().count()), 0.0);
  for (size_t bucket = 0; bucket < squares.size(); ++bucket) {
    if (std::isfinite(squares[bucket])) sums[buckets + bucket] = squares[bucket];
  }
  observed_ = false;
  observed_square_ = 0;
  {
    const PhaseSpan phase(context, "agreement");
    communicator.all_reduce(std::span(sums), comm::Reduction::kSum);
  }

  GradientNorm result;
  for (int rank = world - 1; rank >= 0; --rank) {
    if (sums[kFlags + static_cast<size_t>(rank)] > 0) result.first_bad_rank = rank;
  }
  result.finite = result.first_bad_rank < 0;
  if (!result.finite) return result;
  const int gradients_summed = local && sources_ > 0 ? sources_ : world;
  const double norm = std::sqrt(sums[kSquare] / gradients_summed);
  // As in the compressed phase: second moments and their sums stay finite in f32.
  if (!(norm * unscale <= std::sqrt(updates::kLargestFinite))) {
    result.finite = false;
    return result;
  }
  const bool observed = !local && sums[kObservers] == world;
  if (observed) measure_ratio(norm, std::sqrt(sums[kObservedSquare] / world), world);
  if (shares_ && (local || observed)) shares_->follow(std::span(sums).subspan(buckets));
  result.norm = norm * unscale * (local ? ratio_ : 1);
  if (threshold_ > 0 && result.norm > threshold_) result.coefficient = threshold_ / result.norm;
  return result;
}

void GradientClipper::measure_ratio(double norm_of_average, double rms_of_norms, int ranks) {
  if (!(rms_of_norms > 0)) return;
  double ratio = norm_of_average / rms_of_norms;
  if (sources_ > 0 && sources_ != ranks) ratio = ratio_of(ratio, ranks, sources_);
  ++measurements_;
  const double weight = std::max(kRatioWeight, 1.0 / static_cast<double>(measurements_));
  ratio_ += weight * (ratio - ratio_);
}

void GradientClipper::follow(double ratio, std::span<const double> bucket_squares) {
  if (ratio > 0) {
    ratio_ = ratio;
    measurements_ = std::max<int64_t>(measurements_, 1);
  }
  if (shares_ && !bucket_squares.empty()) shares_->follow(bucket_squares);
}

std::span<const double> GradientClipper::norm_limits() {
  limits_.clear();
  if (threshold_ == 0 || !shares_ || !shares_->known()) return {};
  for (int64_t bucket = 0; bucket < shares_->buckets().count(); ++bucket) {
    limits_.push_back(shares_->limit(bucket, threshold_) / ratio_);
  }
  return limits_;
}

Json GradientClipper::save(int sources) const {
  Json state = {{"ratio", ratio_}, {"measurements", measurements_}, {"ranks", sources}};
  if (shares_) state["buckets"] = shares_->save();
  return state;
}

void GradientClipper::load(const Json& state, int sources) {
  ratio_ = state.at("ratio").get<double>();
  measurements_ = state.at("measurements").get<int64_t>();
  // Shares of local norms do not depend on the number of ranks.
  if (shares_) shares_->load(state.value("buckets", Json()));
  const int saved = state.at("ranks").get<int>();
  if (saved == sources) return;
  if (saved == 1) {
    // A single rank measured no noise. Until the ratio is measured, 1 clips too much rather than
    // too little.
    ratio_ = 1;
    measurements_ = 0;
    return;
  }
  ratio_ = ratio_of(ratio_, saved, sources);
}

namespace {

std::string first_above(const ParameterTable& table, double limit) {
  for (const ParameterEntry& entry : table.entries()) {
    const Tensor gradient = to_cpu_f32(table.gradient_of(entry));
    const float* values = gradient.data<float>();
    for (int64_t i = 0; i < entry.shape.elements(); ++i) {
      if (!(std::abs(values[i]) <= limit))
        return fmt::format("{}[{}] = {}", entry.name, i, values[i]);
    }
  }
  return {};
}

}  // namespace

std::string first_non_finite(const ParameterTable& table, double gradient_scale) {
  const std::string found = first_above(table, updates::kLargestFinite);
  if (!found.empty()) return found;
  // A gradient whose square exceeds the limit counts as infinite too
  // (updates/onebit_adam_update.h).
  return first_above(table, std::sqrt(updates::kLargestFinite) / gradient_scale);
}

}  // namespace onebit::optim
