// Approximates the nearest orthogonal matrix by Newton-Schulz iterations of fifth degree (Jordan et
// al., "Muon", 2024): keeps the singular vectors of X and moves its singular values to about
// [0.7, 1.2], while those below a thousandth of its norm remain smaller. f32 on a CPU.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::muon {

inline constexpr int kIterations = 5;
// An iteration maps a singular value s to kLinear s + kCubic s^3 + kQuintic s^5.
inline constexpr float kLinear = 3.4445f, kCubic = -4.7750f, kQuintic = 2.0315f;

class NewtonSchulz {
 public:
  // For matrices of this shape.
  NewtonSchulz(int64_t rows, int64_t columns);

  // matrix [rows, columns]: X, overwritten with the result. Zeros stay zeros.
  void run(Context& context, View matrix);

 private:
  void iterate(Context& context, ConstView from, View to);

  bool wide_;                    // more columns than rows
  Tensor gram_, square_, next_;  // the first two of the shorter side squared
};

}  // namespace onebit::muon
