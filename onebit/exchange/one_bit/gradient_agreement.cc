#include "onebit/exchange/one_bit/gradient_agreement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onebit/math/ops/reduce.h"

namespace onebit::optim {
namespace {

template <typename T>
void read_into(std::vector<T>& host, const View& view) {
  copy(View::of(host.data(), view.shape()), view);
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

// The buffers are in the order of Buffer.
StateLayout GradientAgreement::layout() {
  return {{.name = "block_square", .extent = Extent::kShareBlocks, .type = DType::kF64},
          {.name = "block_flags", .extent = Extent::kShareBlocks, .type = DType::kU8}};
}

GradientAgreement::GradientAgreement(const Topology& topology, Device device)
    : topology_(topology), state_(layout(), topology, device) {
  const int64_t blocks = comm::blocks_in(topology.elements());
  host_square_.resize(static_cast<size_t>(blocks));
  host_flags_.resize(static_cast<size_t>(blocks));
  block_scale_.resize(static_cast<size_t>(blocks), 1.0);
  bucket_square_.resize(static_cast<size_t>(topology.buckets().count()));
  limited_square_.resize(bucket_square_.size());
}

double GradientAgreement::scale(Context& context, ConstView gradients, const StepInput& input,
                                int64_t bucket) {
  const auto index = static_cast<size_t>(bucket);
  const Range range = topology_.buckets().range(bucket);
  double scale = input.gradient_scale;
  if (!input.norm_limits.empty()) {
    ONEBIT_INVARIANT(input.norm_limits.size() == bucket_square_.size());
    const Range in_buffer = topology_.in_buffer(bucket);
    const double own =
        scale * scale * ops::squared_norm(context, gradients.rows(in_buffer.begin, in_buffer.end));
    const double square = topology_.sum(own);
    const double limit = input.norm_limits[index], norm = std::sqrt(square);
    const double coefficient = norm > limit ? limit / norm : 1;
    // A non-finite value becomes NaN when it is multiplied by 0, so the following pass finds it.
    // Finite values of such a bucket change nothing.
    const bool finite = std::isfinite(square);
    bucket_square_[index] = own;
    limited_square_[index] = finite ? coefficient * coefficient * own : 0;
    scale = finite ? coefficient * scale : 0;
  }
  const auto first = block_scale_.begin() + range.begin / comm::kBlockElements;
  std::fill(first, first + comm::blocks_in(range.elements()), scale);
  return scale;
}

void GradientAgreement::prepare(updates::OnebitNormalize& args) const {
  args.block_square = state_[kSquare];
  args.block_flags = state_[kFlags];
}

std::span<const uint8_t> GradientAgreement::read_flags() {
  read_into(host_flags_, state_[kFlags]);
  return host_flags_;
}

// With limits the squares of the buckets are exchanged, too: later limits are computed from them.
GradientAgreement::Result GradientAgreement::agree(const StepInput& input, bool touched) {
  enum Sum : size_t { kNotFinite, kTouched, kSquares, kLimitedSquares, kBuckets };
  read_into(host_square_, state_[kSquare]);
  std::vector<double> sums(kBuckets, 0.0);
  if (input.norm_limits.empty()) {
    sums[kSquares] = sums[kLimitedSquares] = sum_of(host_square_);
  } else {
    sums[kSquares] = sum_of(bucket_square_);
    sums[kLimitedSquares] = sum_of(limited_square_);
    sums.insert(sums.end(), bucket_square_.begin(), bucket_square_.end());
  }
  bool finite = std::isfinite(sums[kSquares]);
  for (const uint8_t flags : host_flags_)
    finite = finite && (flags & updates::kBlockNotFinite) == 0;
  for (double& one : sums) one = std::isfinite(one) ? one : 0;
  sums[kNotFinite] = finite ? 0 : 1;
  sums[kTouched] = touched ? 1 : 0;
  topology_.world().all_reduce(std::span<double>(sums), comm::Reduction::kSum);
  for (size_t at = kSquares; at < sums.size(); ++at) sums[at] /= topology_.sources();
  return {.finite = sums[kNotFinite] == 0,
          .touched = sums[kTouched] > 0,
          .square = sums[kSquares],
          .limited_square = sums[kLimitedSquares],
          .bucket_squares = {sums.begin() + kBuckets, sums.end()}};
}

}  // namespace onebit::optim
