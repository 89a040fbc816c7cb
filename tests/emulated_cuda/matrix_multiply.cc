#include "tests/emulated_cuda/matrix_multiply.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace emulated_cuda {
namespace {

constexpr int64_t kStep = 16;
constexpr double kTanhScale = 0.79788456080286535588, kTanhCubic = 0.044715;

float load(const void* from, cudaDataType_t type, int64_t at) {
  if (type == CUDA_R_32F) return static_cast<const float*>(from)[at];
  if (type == CUDA_R_16BF) return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[at]);
  return __half2float(static_cast<const __half*>(from)[at]);
}

void store(void* to, cudaDataType_t type, int64_t at, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(to)[at] = value;
  } else if (type == CUDA_R_16BF) {
    static_cast<__nv_bfloat16*>(to)[at] = __float2bfloat16_rn(value);
  } else {
    static_cast<__half*>(to)[at] = __float2half_rn(value);
  }
}

float gelu(float given) {
  const double x = given;
  return static_cast<float>(0.5 * x * (1 + std::tanh(kTanhScale * (x + kTanhCubic * x * x * x))));
}

float gelu_slope(float given) {
  const double x = given, t = std::tanh(kTanhScale * (x + kTanhCubic * x * x * x));
  const double inner = kTanhScale * (1 + 3 * kTanhCubic * x * x);
  return static_cast<float>(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner);
}

// Returns a matrix, or its transpose, row by row.
std::vector<float> rows_of(const void* data, const EmulatedLayout& layout, bool transposed) {
  const int64_t rows = transposed ? layout.columns : layout.rows;
  const int64_t columns = transposed ? layout.rows : layout.columns;
  std::vector<float> result(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t at = transposed ? j + i * layout.leading : i + j * layout.leading;
      result[static_cast<size_t>(i * columns + j)] = load(data, layout.type, at);
    }
  }
  return result;
}

// To 11 significant bits, to nearest even.
float as_tf32(float value) {
  const float shifted = value * 8193.0f;
  return std::isfinite(shifted) ? shifted - (shifted - value) : value;
}

struct Range {
  int64_t begin, end;
};

// The steps of k in [begin, end), in the order in which they are added.
std::vector<Range> steps_of(Range k, const AddingOrder& order) {
  std::vector<Range> tiles, steps;
  const int64_t ragged = (k.end - k.begin) % order.tile;
  int64_t begin = k.begin;
  if (ragged > 0) tiles.push_back({begin, begin + ragged});
  for (begin += ragged; begin < k.end; begin += order.tile) {
    tiles.push_back({begin, begin + order.tile});
  }
  if (order.backwards) std::reverse(tiles.begin(), tiles.end());
  for (const Range& tile : tiles) {
    for (int64_t at = tile.begin; at < tile.end; at += kStep) {
      steps.push_back({at, std::min(at + kStep, tile.end)});
    }
  }
  return steps;
}

// Computes one row of the product: a row of op(A) by op(B) [k, n]. Sanitizers are off here: the
// class only accesses copies of the operands, and would take ten times as long with them.
class RowProduct {
 public:
  RowProduct(const std::vector<float>& b, int64_t k, int64_t n, const AddingOrder& order)
      : b_(b), n_(n), step_(static_cast<size_t>(n)), part_(step_.size()), sum_(step_.size()) {
    for (int64_t part = 0; part < order.parts; ++part) {
      parts_.push_back(steps_of({k * part / order.parts, k * (part + 1) / order.parts}, order));
    }
  }

  [[gnu::no_sanitize("address", "undefined")]] const std::vector<float>& of(const float* a) {
    std::fill(sum_.begin(), sum_.end(), 0.0f);
    for (const auto& steps : parts_) {
      std::fill(part_.begin(), part_.end(), 0.0f);
      for (const Range& step : steps) add(a, step);
      for (size_t j = 0; j < sum_.size(); ++j) sum_[j] += part_[j];
    }
    return sum_;
  }

 private:
  [[gnu::no_sanitize("address", "undefined")]] void add(const float* a, Range step) {
    std::fill(step_.begin(), step_.end(), 0.0f);
    float* const to = step_.data();
    for (int64_t p = step.begin; p < step.end; ++p) {
      const float factor = a[p];
      const float* const row = b_.data() + p * n_;
      for (int64_t j = 0; j < n_; ++j) to[j] += factor * row[j];
    }
    for (size_t j = 0; j < step_.size(); ++j) part_[j] += step_[j];
  }

  const std::vector<float>& b_;
  int64_t n_;
  std::vector<float> step_, part_, sum_;
  std::vector<std::vector<Range>> parts_;
};

void finish(const EmulatedProduct& p, const Factors& f, int64_t i, int64_t j, float sum) {
  const int64_t at = i + j * f.c_layout.leading, aux_at = i + j * p.aux_leading;
  const bool gelu_bias = p.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  float value = f.alpha * sum;
  if (f.beta != 0) value += f.beta * load(f.c, f.c_layout.type, at);
  if (p.epilogue == CUBLASLT_EPILOGUE_BIAS || gelu_bias) value += load(p.bias, p.bias_type, i);
  if (gelu_bias) {
    store(p.aux, p.aux_type, aux_at, value);
    value = gelu(value);
  }
  if (p.epilogue == CUBLASLT_EPILOGUE_DGELU) {
    value *= gelu_slope(load(p.aux, p.aux_type, aux_at));
  }
  store(f.c, f.c_layout.type, at, value);
}

}  // namespace

void multiply(const EmulatedProduct& product, const Factors& f, const AddingOrder& order) {
  const int64_t m = f.c_layout.rows, n = f.c_layout.columns;
  const bool a_transposed = product.a_operation == CUBLAS_OP_T;
  const bool b_transposed = product.b_operation == CUBLAS_OP_T;
  const int64_t k = a_transposed ? f.a_layout.rows : f.a_layout.columns;
  std::vector<float> a = rows_of(f.a, f.a_layout, a_transposed);
  std::vector<float> b = rows_of(f.b, f.b_layout, b_transposed);
  if (product.tf32) {
    for (auto* operand : {&a, &b}) std::ranges::transform(*operand, operand->begin(), as_tf32);
  }
  RowProduct row(b, k, n, order);
  for (int64_t i = 0; i < m; ++i) {
    const std::vector<float>& sums = row.of(a.data() + i * k);
    for (int64_t j = 0; j < n; ++j) finish(product, f, i, j, sums[static_cast<size_t>(j)]);
  }
  if (product.epilogue != CUBLASLT_EPILOGUE_BGRADB) return;
  for (int64_t j = 0; j < n; ++j) {
    float sum = 0;
    for (int64_t p = 0; p < k; ++p) sum += b[static_cast<size_t>(p * n + j)];
    store(product.bias, product.bias_type, j, sum);
  }
}

}  // namespace emulated_cuda
