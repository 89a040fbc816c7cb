// Softmax cross-entropy over the tokens of each sequence: the start and the end of a span (Devlin
// et al., arXiv 1810.04805, section 4.2). Logits f32, bf16 or f16. Arithmetic is f32.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/sequence_starts.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// Every column is a separate prediction (SQuAD: 0 the start, 1 the end) with a softmax over the
// rows of a sequence. A target counts from the first row of its sequence. kIgnoredTarget
// (cross_entropy.h) gives loss 0 and gradient zero. On a CPU a target outside its sequence is an
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
