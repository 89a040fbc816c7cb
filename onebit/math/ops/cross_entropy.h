// Softmax cross-entropy with integer targets. Logits f32, bf16 or f16. Arithmetic is f32.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

inline constexpr int32_t kIgnoredTarget = -1;

// losses = log(sum exp(logits)) - logits[target] over the first `classes` columns. The columns
// after them are padding: they do not contribute and get gradient zero. Rows with kIgnoredTarget
// have loss 0, correct 0 and gradient zero. On a CPU a target outside [-1, classes) is an error
// that names the row, and nothing is written.
struct CrossEntropy {
  View logits;  // [rows, stride >= classes]  replaced by their gradient if write_gradient
  int64_t classes;
  ConstView targets;  // i32 [rows]
  bool write_gradient;
  float gradient_scale;  // gradient = gradient_scale * (softmax - one_hot); 1 / counted rows for a
                         // mean
  View losses;           // f32 [rows]  overwritten
  View correct;          // u8 [rows]   overwritten: 1 where the target is the first largest logit;
                         // empty: not computed
  ConstView class_weights = {};  // f32 [classes]: multiplies loss and gradient of the rows of a
                                 //                class; empty: 1
};
void cross_entropy(Context&, const CrossEntropy&);

}  // namespace onebit::ops
