// The row arithmetic of norms on a CUDA device: a thread block holds one row, eight columns
// per thread (row_threads in kernel_cuda.h). For *_cuda.cu only.
#pragma once

#include "onebit/ground/base/encoder_choices.h"
#include "onebit/math/kernels/kernel_cuda.h"

namespace onebit::kernels::cuda {

struct RowStatistics {
  float mean, inverse_stddev;
};

// The variance is computed about the mean, which is 0 for kRms. Columns from `count` on do not
// belong to the row. A block has one row.
__device__ inline RowStatistics row_statistics(NormKind kind, const Eight& row, int64_t count,
                                               int64_t hidden, float epsilon) {
  float sum = 0, squares = 0;
  for (int i = 0; i < kEight; ++i) sum += row.lane[i];  // zeros past the end
  float mean = block_sums_in_turn<float>({sum, 0}, 0).first / static_cast<float>(hidden);
  if (kind == NormKind::kRms) mean = 0;
  for (int i = 0; i < kEight; ++i) {
    const float centred = i < count ? row.lane[i] - mean : 0.0f;
    squares = fmaf(centred, centred, squares);
  }
  const float variance =
      block_sums_in_turn<float>({squares, 0}, 1).first / static_cast<float>(hidden);
  return {mean, 1.0f / sqrtf(variance + epsilon)};
}

__device__ inline Eight normalised(const Eight& row, RowStatistics statistics, const Eight& gamma,
                                   const Eight& beta) {
  Eight result;
  for (int i = 0; i < kEight; ++i) {
    const float x_hat = (row.lane[i] - statistics.mean) * statistics.inverse_stddev;
    result.lane[i] = fmaf(x_hat, gamma.lane[i], beta.lane[i]);
  }
  return result;
}

// Eight elements of beta [hidden], zeros if it is null.
__device__ inline Eight load_beta(const float* beta, int64_t column, int64_t hidden) {
  return beta != nullptr ? load_eight(beta + column, hidden - column) : Eight{};
}

// The source of the normalised value of the forward pass: the norm's input, or its output if
// `input` is null.
template <typename T>
struct NormSource {
  const T *input, *output;
  const float* mean;  // null if it is 0 or not needed, as with the output
  const float *inverse_stddev, *beta;

  __device__ __host__ const T* values() const { return input != nullptr ? input : output; }
  __device__ RowStatistics statistics(int64_t row) const {
    return {mean != nullptr ? mean[row] : 0.0f, inverse_stddev[row]};
  }
  // `result`: the elements of values() at the column.
  __device__ Eight x_hat(Eight result, RowStatistics of_row, int64_t hidden, int64_t column,
                         const Eight& gamma) const {
    const int64_t count = hidden - column;
    if (input != nullptr) {
      for (int i = 0; i < kEight; ++i) {
        result.lane[i] = i < count ? (result.lane[i] - of_row.mean) * of_row.inverse_stddev : 0.0f;
      }
      return result;
    }
    const Eight shift = load_beta(beta, column, hidden);
    for (int i = 0; i < kEight; ++i) {
      const float scale = gamma.lane[i] == 0.0f ? 0.0f : 1.0f / gamma.lane[i];
      result.lane[i] = i < count ? (result.lane[i] - shift.lane[i]) * scale : 0.0f;
    }
    return result;
  }
  __device__ Eight x_hat(int64_t row, int64_t hidden, int64_t column, const Eight& gamma) const {
    const int64_t at = row * hidden + column, count = hidden - column;
    return x_hat(load_eight(values() + at, count), statistics(row), hidden, column, gamma);
  }
};

// Divides by the number of columns in three instructions, with the bits of a division (Markstein:
// one correction of the product with a rounded reciprocal, unless the divisor's mantissa is all
// ones).
class MeanOf {
 public:
  __device__ explicit MeanOf(int64_t hidden)
      : hidden_(static_cast<float>(hidden)), reciprocal_(1.0f / hidden_) {}
  __device__ float operator()(float sum) const {
    const float nearly = sum * reciprocal_;
    return fmaf(fmaf(-nearly, hidden_, sum), reciprocal_, nearly);
  }

 private:
  float hidden_, reciprocal_;
};

// The same by a division, for kernels whose registers are needed elsewhere.
struct MeanByDivision {
  int64_t hidden;
  __device__ float operator()(float sum) const { return sum / static_cast<float>(hidden); }
};

// The gradient of the norm's input from the gradient of its output. Adds to the sums of gamma and
// beta. A block calls it for one `row` after the other. kWarps: as in block_sums_in_turn().
template <unsigned kWarps = 0, class Mean>
__device__ Eight norm_gradient(NormKind kind, const Eight& grad_y, const Eight& x_hat,
                               const Eight& gamma, int64_t row, const Mean& mean,
                               float inverse_stddev, Eight& gamma_sum, Eight& beta_sum) {
  Sums sums{0, 0};
  for (int i = 0; i < kEight; ++i) {
    const float scaled = grad_y.lane[i] * gamma.lane[i];  // zeros past the end
    sums.first += scaled;
    sums.second = fmaf(scaled, x_hat.lane[i], sums.second);
    gamma_sum.lane[i] = fmaf(grad_y.lane[i], x_hat.lane[i], gamma_sum.lane[i]);
    beta_sum.lane[i] += grad_y.lane[i];
  }
  sums = block_sums_in_turn<float, kWarps>(sums, static_cast<unsigned>(row) % 2);
  const float mean_grad = kind == NormKind::kLayer ? mean(sums.first) : 0.0f;
  const float mean_product = mean(sums.second);
  Eight result;
  for (int i = 0; i < kEight; ++i) {
    const float centred = grad_y.lane[i] * gamma.lane[i] - mean_grad;
    result.lane[i] = fmaf(-x_hat.lane[i], mean_product, centred) * inverse_stddev;
  }
  return result;
}

}  // namespace onebit::kernels::cuda
