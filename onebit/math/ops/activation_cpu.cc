#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/activation_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <type_traits>

#include "onebit/math/kernels/column_partials.h"
#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_math_inl.h"
#include "onebit/math/ops/activation.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

// Each activation provides its value and its derivative from what the forward pass saved.
struct GeluErf {
  static HWY_INLINE Vector value(Vector x) { return hn::Mul(x, normal(x).distribution); }
  static HWY_INLINE Vector derivative(Vector x) {
    const Normal at_x = normal(x);
    return hn::MulAdd(x, at_x.density, at_x.distribution);
  }
};

// The value of GeluErf where it is rounded to bf16.
struct GeluErfToBf16 {
  static HWY_INLINE Vector value(Vector x) { return hn::Mul(x, normal_distribution_for_bf16(x)); }
};

// With u = sqrt(2/pi) (x + 0.044715 x^3), (1 + tanh u) / 2 is sigmoid(2 u).
struct GeluTanh {
  static constexpr float kLinear = 1.59576912161f, kCubic = 0.0713548162726f;  // of 2 u

  static HWY_INLINE Vector gate(Vector x) {
    const Vector slope = hn::MulAdd(hn::Mul(x, x), set(kCubic), set(kLinear));
    return sigmoid(hn::Mul(x, slope));
  }
  static HWY_INLINE Vector value(Vector x) { return hn::Mul(x, gate(x)); }
  static HWY_INLINE Vector derivative(Vector x) {
    const Vector s = gate(x);
    const Vector slope = hn::MulAdd(hn::Mul(x, x), set(3 * kCubic), set(kLinear));
    const Vector change = hn::Mul(hn::Mul(s, hn::Sub(set(1.0f), s)), slope);
    return hn::MulAdd(x, change, s);
  }
};

struct Relu {
  static HWY_INLINE Vector value(Vector x) { return hn::IfThenElse(hn::Lt(x, zero()), zero(), x); }
  static HWY_INLINE Vector derivative(Vector x) {
    return hn::IfThenElseZero(hn::Gt(x, zero()), set(1.0f));
  }
};

struct Swish {
  static HWY_INLINE Vector value(Vector x) { return hn::Mul(x, sigmoid(x)); }
  static HWY_INLINE Vector derivative(Vector x) {
    const Vector s = sigmoid(x);
    return hn::MulAdd(hn::Mul(x, s), hn::Sub(set(1.0f), s), s);
  }
};

struct Tanh {
  static HWY_INLINE Vector value(Vector x) { return hyperbolic_tangent(x); }
  static HWY_INLINE Vector derivative(Vector y) { return hn::NegMulAdd(y, y, set(1.0f)); }
};

template <class Body>
HWY_INLINE void with_activation(ActivationKind kind, const Body& body) {
  switch (kind) {
    case ActivationKind::kGeluErf:
      return body(GeluErf());
    case ActivationKind::kGeluTanh:
      return body(GeluTanh());
    case ActivationKind::kRelu:
      return body(Relu());
    case ActivationKind::kSwish:
      return body(Swish());
    case ActivationKind::kTanh:
      return body(Tanh());
  }
}

// The function for values that are rounded to T.
template <typename T, class Function>
using RoundedTo = std::conditional_t<std::is_same_v<T, bf16> && std::is_same_v<Function, GeluErf>,
                                     GeluErfToBf16, Function>;

void activation(Context& context, const Activation& a) {
  with_float_type(a.x.dtype(), [&](auto tag) HWY_ATTR {
    using T = decltype(tag);
    with_activation(a.kind, [&](auto function) HWY_ATTR {
      using Chosen = RoundedTo<T, decltype(function)>;
      const T* x = a.x.data<T>();
      T* y = a.y.data<T>();
      for_parts(context, a.x.elements(), grain_for(1),
                [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
                  for_lanes(end - begin, [&](int64_t i, auto lanes) HWY_ATTR {
                    store(Chosen::value(load(x + begin + i, lanes)), y + begin + i, lanes);
                  });
                });
    });
  });
}

template <typename T, class Function>
void backward_block(const ActivationBackward& a, int64_t begin, int64_t end, float* grad_bias) {
  const int64_t columns = a.grad_y.extent(1);
  for (int64_t row = begin; row < end; ++row) {
    const T* grad_y = a.grad_y.data<T>() + row * columns;
    const T* saved = a.saved.data<T>() + row * columns;
    T* grad_x = a.grad_x.data<T>() + row * columns;
    for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
      const Vector slope = Function::derivative(load(saved + i, lanes));
      const Vector value = hn::Mul(load(grad_y + i, lanes), slope);
      store(value, grad_x + i, lanes);
      if (grad_bias != nullptr) {
        store(hn::Add(load(grad_bias + i, lanes), value), grad_bias + i, lanes);
      }
    });
  }
}

void activation_backward(Context& context, const ActivationBackward& a) {
  const int64_t rows = a.grad_y.extent(0), columns = a.grad_y.extent(1);
  const bool sums_bias = !a.grad_bias.empty();
  const RowBlocks blocks(rows);
  ColumnPartials sums(context, blocks, sums_bias ? columns : 0, 1);
  with_float_type(a.grad_y.dtype(), [&](auto tag) HWY_ATTR {
    with_activation(a.kind, [&](auto function) HWY_ATTR {
      for_parts(context, blocks.count(), grain_for(columns * blocks.rows_per_block()),
                [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
                  for (int64_t block = begin; block < end; ++block) {
                    sums.clear(block);
                    backward_block<decltype(tag), decltype(function)>(
                        a, blocks.begin(block), blocks.end(block),
                        sums_bias ? sums.of(0, block) : nullptr);
                  }
                });
    });
  });
  if (sums_bias) sums.add_to(context, 0, a.grad_bias.data<float>());
}

void gated_activation(Context& context, const GatedActivation& a) {
  const int64_t rows = a.y.extent(0), columns = a.y.extent(1);
  with_float_type(a.y.dtype(), [&](auto tag) HWY_ATTR {
    using T = decltype(tag);
    with_activation(a.kind, [&](auto function) HWY_ATTR {
      using Chosen = RoundedTo<T, decltype(function)>;
      for_parts(context, rows, grain_for(columns),
                [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
                  for (int64_t row = begin; row < end; ++row) {
                    const T* x = a.x.data<T>() + 2 * row * columns;
                    T* y = a.y.data<T>() + row * columns;
                    for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
                      const Vector value = Chosen::value(load(x + i, lanes));
                      store(hn::Mul(value, load(x + columns + i, lanes)), y + i, lanes);
                    });
                  }
                });
    });
  });
}

// The derivative of an activation at x.
template <class Function>
HWY_INLINE Vector slope_at(Vector x) {
  if constexpr (std::is_same_v<Function, Tanh>) return Tanh::derivative(Tanh::value(x));
  return Function::derivative(x);
}

// `bias` [2 * columns] gets the column sums, unless it is null.
template <typename T, class Function>
void gated_backward_block(const GatedActivationBackward& a, int64_t begin, int64_t end,
                          float* bias) {
  const int64_t columns = a.grad_y.extent(1);
  for (int64_t row = begin; row < end; ++row) {
    const T* grad_y = a.grad_y.data<T>() + row * columns;
    const T* x = a.x.data<T>() + 2 * row * columns;
    T* grad_x = a.grad_x.data<T>() + 2 * row * columns;
    for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
      const Vector gate = load(x + i, lanes), factor = load(x + columns + i, lanes);
      const Vector grad = load(grad_y + i, lanes);
      const Vector to_gate = hn::Mul(hn::Mul(grad, factor), slope_at<Function>(gate));
      const Vector to_factor = hn::Mul(grad, Function::value(gate));
      store(to_gate, grad_x + i, lanes);
      store(to_factor, grad_x + columns + i, lanes);
      if (bias != nullptr) {
        float* const second = bias + columns;
        store(hn::Add(load(bias + i, lanes), to_gate), bias + i, lanes);
        store(hn::Add(load(second + i, lanes), to_factor), second + i, lanes);
      }
    });
  }
}

void gated_activation_backward(Context& context, const GatedActivationBackward& a) {
  const int64_t rows = a.grad_y.extent(0), columns = a.grad_y.extent(1);
  const bool sums_bias = !a.grad_bias.empty();
  const RowBlocks blocks(rows);
  ColumnPartials sums(context, blocks, sums_bias ? 2 * columns : 0, 1);
  with_float_type(a.grad_y.dtype(), [&](auto tag) HWY_ATTR {
    with_activation(a.kind, [&](auto function) HWY_ATTR {
      for_parts(context, blocks.count(), grain_for(2 * columns * blocks.rows_per_block()),
                [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
                  for (int64_t block = begin; block < end; ++block) {
                    sums.clear(block);
                    gated_backward_block<decltype(tag), decltype(function)>(
                        a, blocks.begin(block), blocks.end(block),
                        sums_bias ? sums.of(0, block) : nullptr);
                  }
                });
    });
  });
  if (sums_bias) sums.add_to(context, 0, a.grad_bias.data<float>());
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

ONEBIT_CPU_OP(activation, Activation);
ONEBIT_CPU_OP(activation_backward, ActivationBackward);
ONEBIT_CPU_OP(gated_activation, GatedActivation);
ONEBIT_CPU_OP(gated_activation_backward, GatedActivationBackward);

}  // namespace onebit::ops
#endif
