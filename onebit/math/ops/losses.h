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

// Losses of rows with numeric targets: independent labels (present or absent) and regression.
// CrossEntropy is for one class of several. Logits f32, bf16 or f16. Arithmetic is f64.

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

// Softmax cross-entropy over the tokens of each sequence: the start and the end of a span (Devlin
// et al., arXiv 1810.04805, section 4.2). Logits f32, bf16 or f16. Arithmetic is f32.

// Every column is a separate prediction (SQuAD: 0 the start, 1 the end) with a softmax over the
// rows of a sequence. A target counts from the first row of its sequence. kIgnoredTarget
// gives loss 0 and gradient zero. On a CPU a target outside its sequence is an
// error that names it, and nothing is written.
struct SpanCrossEntropy {
  View logits;  // [rows, columns]  replaced by their gradient if write_gradient
  SequenceStarts sequence_starts;
  ConstView targets;  // i32 [columns, batch]
  bool write_gradient;
  float gradient_scale;  // gradient = gradient_scale * (softmax - one_hot)
  View losses;           // f32 [columns, batch]  overwritten
};
void span_cross_entropy(Context&, const SpanCrossEntropy&);

}  // namespace onebit::ops
