// Flattens the spectrum of a matrix's gradients, like the division by the root of the variance for
// single elements: y = A g B with A = L^(-1/2), B = R^(-1/2) for running means L and R of g g^T and
// g^T g. This turns noise P n Q into noise of independent elements like n. f32 on a CPU.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::muon {

// root = M^(1/2) and inverse = M^(-1/2) of a symmetric M whose eigenvalues lie above a 10^5th of
// its norm, by coupled Newton-Schulz iterations. All are f32 [side, side] and must not overlap.
void square_roots(Context& context, ConstView matrix, View root, View inverse);

class Whitening {
 public:
  Whitening(int64_t rows, int64_t columns);

  // Adds a gradient [rows, columns] to the means.
  void observe(Context& context, ConstView gradient);
  // Computes A and B from the means. Before the first call they are the identity.
  void refresh(Context& context);

  // In place.
  void apply(Context& context, View gradient) const;   // A g B
  void take_back(Context& context, View white) const;  // A^-1 y B^-1

 private:
  struct Side {
    Tensor mean, root, inverse;  // [size, size], for M, M^(1/2), M^(-1/2)
  };

  static Side make_side(int64_t size);
  void multiply(Context& context, View matrix, const Tensor& left, const Tensor& right) const;

  Side left_, right_;
  Tensor scratch_;  // [rows, columns]
};

}  // namespace onebit::muon
