// Sizes, parameters and tolerances shared by the tests of the operations that contain a layer norm.
#pragma once

#include <cmath>
#include <ostream>

#include "tests/ops/backend_test.h"
#include "tests/reference/layer_norm.h"

namespace onebit::ops {

inline constexpr float kEpsilon = 1e-12f;

struct NormSize {
  int64_t rows, hidden;
};
inline constexpr NormSize kNormSizes[] = {{1, 8},    {5, 19},   {70, 96},  {300, 768},
                                          {17, 512}, {9, 1024}, {7, 1280}, {3, 4096}};

// The norms of families of encoders.
struct NormForm {
  NormKind kind;
  bool has_beta;
};
inline constexpr NormForm kNormForms[] = {{NormKind::kLayer, true},
                                          {NormKind::kLayer, false},
                                          {NormKind::kRms, false},
                                          {NormKind::kRms, true}};
inline std::ostream& operator<<(std::ostream& to, const NormForm& form) {
  return to << (form.kind == NormKind::kLayer ? "layer norm" : "RMS norm")
            << (form.has_beta ? " with" : " without") << " beta";
}

class NormTest : public BackendTest {
 protected:
  // Zeros stand for a beta that is left out.
  reference::Matrix beta(const NormForm& form, int64_t hidden) {
    return form.has_beta ? random_f32(1, hidden, 4) : reference::Matrix(1, hidden);
  }
  // A sum of n rounded terms has an error of about sqrt(n) u, and rarely 4 times that. Normalised
  // values are below 4 here. Every output is computed from three sums over a row.
  static double arithmetic(int64_t hidden) { return 3 * 4 * over(hidden) * 0x1p-24; }
  static double over(int64_t terms) { return 4 * std::sqrt(static_cast<double>(terms)) + 4; }
  // gamma away from 0, so that the invertible form is well conditioned.
  reference::Matrix gamma(int64_t hidden) {
    reference::Matrix g = random_f32(1, hidden, 8, 0.25);
    for (double& value : g.data) value = static_cast<float>(value + 1.5);
    return g;
  }
};

}  // namespace onebit::ops
