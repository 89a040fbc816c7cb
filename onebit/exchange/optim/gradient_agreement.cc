#include "onebit/exchange/optim/gradient_agreement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onebit/math/ops/reduce.h"

namespace onebit::optim {
namespace {

template <typename T>
void read_into(std::vector<T>& host, const Tensor& tensor) {
  copy(View::of(host.data(), tensor.shape()), tensor.view());
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

GradientAgreement::GradientAgreement(const Levels& levels, Device device) : levels_(levels) {
  const int64_t blocks = comm::blocks_in(levels.elements());
  square_ = Tensor::zeros(device, DType::kF64, {blocks});
  flags_ = Tensor::zeros(device, DType::kU8, {blocks});
  host_square_.resize(static_cast<size_t>(blocks));
  host_flags_.resize(static_cast<size_t>(blocks));
  block_scale_.resize(static_cast<size_t>(blocks), 1.0);
  bucket_square_.resize(static_cast<size_t>(levels.buckets().count()));
  limited_square_.resize(bucket_square_.size());
}

int64_t GradientAgreement::size_bytes_of(int64_t elements) {
  return static_cast<int64_t>(sizeof(double) + sizeof(uint8_t)) * comm::blocks_in(elements);
}

double GradientAgreement::scale(Context& context, ConstView gradients, const StepInput& input,
                                int64_t bucket) {
  const auto index = static_cast<size_t>(bucket);
  const Range range = levels_.buckets().range(bucket);
  double scale = input.gradient_scale;
  if (!input.norm_limits.empty()) {
    ONEBIT_INVARIANT(input.norm_limits.size() == bucket_square_.size());
    const Range in_buffer = levels_.in_buffer(bucket);
    const double own =
        scale * scale * ops::squared_norm(context, gradients.rows(in_buffer.begin, in_buffer.end));
    const double square = levels_.sum(own);
    const double limit = input.norm_limits[index], norm = std::sqrt(square);
    const double coefficient = norm > limit ? limit / norm : 1;
    // A non-finite value becomes NaN when it is multiplied by 0, so the following pass finds it;
    // finite values of such a bucket change nothing.
    const bool finite = std::isfinite(square);
    bucket_square_[index] = own;
    limited_square_[index] = finite ? coefficient * coefficient * own : 0;
    scale = finite ? coefficient * scale : 0;
  }
  const auto first = block_scale_.begin() + range.begin / comm::kBlockElements;
  std::fill(first, first + comm::blocks_in(range.elements()), scale);
  return scale;
}

void GradientAgreement::prepare(ops::OnebitNormalize& args) const {
  args.block_square = square_.view();
  args.block_flags = flags_.view();
}

std::span<const uint8_t> GradientAgreement::read_flags() {
  read_into(host_flags_, flags_);
  return host_flags_;
}

// With limits the squares of the buckets are exchanged, too: later limits are computed from them.
GradientAgreement::Result GradientAgreement::agree(const StepInput& input, bool touched) {
  enum Slot : size_t { kNotFinite, kTouched, kSquare, kLimitedSquare, kBuckets };
  read_into(host_square_, square_);
  std::vector<double> sums(kBuckets, 0.0);
  if (input.norm_limits.empty()) {
    sums[kSquare] = sums[kLimitedSquare] = sum_of(host_square_);
  } else {
    sums[kSquare] = sum_of(bucket_square_);
    sums[kLimitedSquare] = sum_of(limited_square_);
    sums.insert(sums.end(), bucket_square_.begin(), bucket_square_.end());
  }
  bool finite = std::isfinite(sums[kSquare]);
  for (const uint8_t flags : host_flags_) finite = finite && (flags & ops::kBlockNotFinite) == 0;
  for (double& one : sums) one = std::isfinite(one) ? one : 0;
  sums[kNotFinite] = finite ? 0 : 1;
  sums[kTouched] = touched ? 1 : 0;
  levels_.world().all_reduce(std::span<double>(sums), comm::Reduction::kSum);
  for (size_t at = kSquare; at < sums.size(); ++at) sums[at] /= levels_.sources();
  return {.finite = sums[kNotFinite] == 0,
          .touched = sums[kTouched] > 0,
          .square = sums[kSquare],
          .limited_square = sums[kLimitedSquare],
          .bucket_squares = {sums.begin() + kBuckets, sums.end()}};
}

}  // namespace onebit::optim
