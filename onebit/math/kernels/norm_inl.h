// The row arithmetic of norms, shared by every operation that contains one. A row is in an f32
// buffer in the first-level cache.

#if defined(ONEBIT_KERNELS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_KERNELS_NORM_INL_H_
#undef ONEBIT_KERNELS_NORM_INL_H_
#else
#define ONEBIT_KERNELS_NORM_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/encoder_choices.h"
#include "onebit/math/device/context.h"
#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/tensor/view.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::kernels::HWY_NAMESPACE {

// A view's values, or `count` zeros if it is empty: the beta of a norm that has none, the means of
// rows that are not centred. Loops need no branch for them.
class ValuesOrZeros {
 public:
  ValuesOrZeros(Context& context, const ConstView& view, int64_t count)
      : memory_(context.scratch().take(view.empty() ? count * 4 : 0)),
        data_(view.empty() ? memory_.as<float>() : view.data<float>()) {
    if (view.empty()) std::fill_n(memory_.as<float>(), count, 0.0f);
  }
  const float* data() const { return data_; }

 private:
  Scratch::Block memory_;
  const float* data_;
};

struct RowStatistics {
  float mean, inverse_stddev;
};

// Statistics of row [hidden] with known sum: the variance is computed about the mean, which is 0
// for kRms.
HWY_INLINE RowStatistics row_statistics(NormKind kind, const float* row, int64_t hidden, float sum,
                                        float epsilon) {
  const float mean = kind == NormKind::kLayer ? sum / static_cast<float>(hidden) : 0.0f;
  Chains squares;
  for_lanes_chained(hidden, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
    const Vector centred = keep(hn::Sub(load(row + i, lanes), set(mean)), lanes);
    squares.chain[chain] = hn::MulAdd(centred, centred, squares.chain[chain]);
  });
  const float variance = squares.sum() / static_cast<float>(hidden);
  return {mean, 1.0f / std::sqrt(variance + epsilon)};
}

// The normalised and scaled value at one position.
template <class Lanes>
HWY_INLINE Vector normalised(const float* row, int64_t i, Lanes lanes, RowStatistics statistics,
                             const float* gamma, const float* beta) {
  const Vector centred = hn::Sub(load(row + i, lanes), set(statistics.mean));
  const Vector x_hat = hn::Mul(centred, set(statistics.inverse_stddev));
  return hn::MulAdd(x_hat, load(gamma + i, lanes), load(beta + i, lanes));
}

// The source of the normalised value of the forward pass: the norm's input and its statistics, or
// the norm's output and its parameters.
template <typename T>
struct FromInput {
  const T* input;
  const float *mean, *inverse_stddev;

  template <class Lanes>
  HWY_INLINE Vector x_hat(int64_t row, int64_t hidden, int64_t i, Lanes lanes) const {
    const Vector centred = hn::Sub(load(input + row * hidden + i, lanes), set(mean[row]));
    return hn::Mul(centred, set(inverse_stddev[row]));
  }
};
template <typename T>
struct FromOutput {
  const T* output;
  const float *beta, *inverse_gamma;

  template <class Lanes>
  HWY_INLINE Vector x_hat(int64_t row, int64_t hidden, int64_t i, Lanes lanes) const {
    const Vector scaled = hn::Sub(load(output + row * hidden + i, lanes), load(beta + i, lanes));
    return hn::Mul(scaled, load(inverse_gamma + i, lanes));
  }
};

// Fills [hidden] with 1 / gamma, 0 where gamma is 0.
HWY_INLINE void invert_gamma(const float* gamma, int64_t hidden, float* inverse_gamma) {
  for (int64_t i = 0; i < hidden; ++i) inverse_gamma[i] = gamma[i] == 0.0f ? 0.0f : 1.0f / gamma[i];
}

// Two f32 rows that the backward pass of one row needs twice.
struct NormGradientRow {
  float* x_hat;  // [hidden]
  float* grad;   // [hidden]  gradient of the normalised value: grad_y * gamma
  NormKind kind = NormKind::kLayer;
  float mean_grad = 0, mean_product = 0;

  // Reads grad_y(i, lanes) of one row and adds to grad_gamma and grad_beta.
  template <class Source, class GradY>
  HWY_INLINE void gather(const Source& source, int64_t row, int64_t hidden, const float* gamma,
                         float* grad_gamma, float* grad_beta, const GradY& grad_y) {
    Chains grads, products;
    for_lanes_chained(hidden, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
      const Vector dy = grad_y(i, lanes);
      const Vector hat = keep(source.x_hat(row, hidden, i, lanes), lanes);
      const Vector scaled = hn::Mul(dy, load(gamma + i, lanes));
      store(hn::MulAdd(dy, hat, load(grad_gamma + i, lanes)), grad_gamma + i, lanes);
      store(hn::Add(dy, load(grad_beta + i, lanes)), grad_beta + i, lanes);
      store(hat, x_hat + i, lanes);
      store(scaled, grad + i, lanes);
      grads.chain[chain] = hn::Add(grads.chain[chain], scaled);
      products.chain[chain] = hn::MulAdd(scaled, hat, products.chain[chain]);
    });
    if (kind == NormKind::kLayer) mean_grad = grads.sum() / static_cast<float>(hidden);
    mean_product = products.sum() / static_cast<float>(hidden);
  }

  // The gradient of the norm's input at one position.
  template <class Lanes>
  HWY_INLINE Vector grad_input(int64_t i, Lanes lanes, float inverse_stddev) const {
    const Vector centred = hn::Sub(load(grad + i, lanes), set(mean_grad));
    const Vector value = hn::NegMulAdd(load(x_hat + i, lanes), set(mean_product), centred);
    return hn::Mul(value, set(inverse_stddev));
  }
};

}  // namespace onebit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
