// What makes the spectrum of a matrix's gradients flat, as dividing by the root of the variance
// does with single elements: y = A g B with A = L^(-1/2), B = R^(-1/2) for running means L and R of
// g g^T and g^T g. Noise P n Q, with n of independent elements, becomes such an n. f32 on a CPU.
#pragma once

#include "onebit/device/context.h"
#include "onebit/tensor/tensor.h"

namespace onebit::muon {

// root = M^(1/2) and inverse = M^(-1/2) of a symmetric M whose eigenvalues lie above a 10^5th of
// its norm, by coupled Newton-Schulz iterations. All f32 [side, side], of different memory.
void square_roots(Context& context, ConstView matrix, View root, View inverse);

class Whitening {
 public:
  Whitening(int64_t rows, int64_t columns);

  // Takes a gradient [rows, columns] into the means.
  void observe(Context& context, ConstView gradient);
  // Makes A and B of the means; before the first call they are 1.
  void refresh(Context& context);

  // In place.
  void apply(Context& context, View gradient) const;   // A g B
  void take_back(Context& context, View white) const;  // A^-1 y B^-1

 private:
  struct Side {
    Tensor mean, root, inverse;  // [size, size]; M, M^(1/2), M^(-1/2)
  };

  static Side make_side(int64_t size);
  void multiply(Context& context, View matrix, const Tensor& left, const Tensor& right) const;

  Side left_, right_;
  Tensor scratch_;  // [rows, columns]
};

}  // namespace onebit::muon
