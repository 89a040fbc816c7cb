// Losses of rows with numeric targets: independent labels (present or absent) and regression. For
// one class of several see cross_entropy.h. Logits f32, bf16 or f16. Arithmetic is f64.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// The loss of a column with logit x, target t and weight w:
enum class LabelLossKind {
  kSigmoid,  // w t log(1 + exp(-x)) + (1 - t) log(1 + exp(x)), with t in [0, 1]
  kSquared,  // (x - t)^2
};

// losses = the mean over the columns. With weights 1 these are PyTorch's BCEWithLogitsLoss and
// MSELoss per row.
struct LabelLoss {
  LabelLossKind kind;
  View logits;                 // [rows, columns]  replaced by their gradient if write_gradient
  ConstView targets;           // f32 [rows, columns]
  ConstView positive_weights;  // f32 [columns]: w of kSigmoid (empty: 1)
  bool write_gradient;
  float gradient_scale;  // gradient = gradient_scale * d losses / d logits
  View losses;           // f32 [rows]  overwritten
};
void label_loss(Context&, const LabelLoss&);

}  // namespace onebit::ops
