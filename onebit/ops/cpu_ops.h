// The CPU halves of the operations: <operation>_cpu.cc. Arguments have been checked.
#pragma once

#include "onebit/ops/activation.h"
#include "onebit/ops/adam_update.h"
#include "onebit/ops/attention.h"
#include "onebit/ops/cast.h"
#include "onebit/ops/cross_entropy.h"
#include "onebit/ops/dropout.h"
#include "onebit/ops/embedding.h"
#include "onebit/ops/layer_norm.h"
#include "onebit/ops/linear.h"
#include "onebit/ops/matrix_product.h"
#include "onebit/ops/onebit_update.h"
#include "onebit/ops/reduce.h"
#include "onebit/ops/residual_norm.h"
#include "onebit/ops/rows.h"
#include "onebit/ops/span_cross_entropy.h"

namespace onebit::ops::cpu {

void dropout(Context&, const DropoutForward&);

// Returns whether the product was made: false, and nothing was done, where its epilogue cannot be
// part of it. Without an epilogue and with a bias it is always made.
bool matrix_product(Context&, const MatrixProduct&);
bool bf16_is_native(Context&);

void activation(Context&, const Activation&);
void activation_backward(Context&, const ActivationBackward&);

void layer_norm(Context&, const LayerNorm&);
void layer_norm_backward(Context&, const LayerNormBackward&);

void residual_norm(Context&, const ResidualNorm&);
void residual_norm_backward(Context&, const ResidualNormBackward&);
void residual_add(Context&, const ResidualAdd&);
void residual_add_backward(Context&, const ResidualAddBackward&);

void embedding(Context&, const Embedding&);
void embedding_backward(Context&, const EmbeddingBackward&);

void attention(Context&, const Attention&);
void attention_backward(Context&, const AttentionBackward&);

void cross_entropy(Context&, const CrossEntropy&);
void span_cross_entropy(Context&, const SpanCrossEntropy&);

void gather_rows(Context&, const GatherRows&);
void scatter_add_rows(Context&, const ScatterAddRows&);

double squared_norm(Context&, ConstView x);
double absolute_sum(Context&, ConstView x);
double dot(Context&, ConstView a, ConstView b);
double sum(Context&, ConstView x);
bool all_finite(Context&, ConstView x);
void column_sum(Context&, const ColumnSum&);

void cast(Context&, const Cast&);
void fill(Context&, View x, float value);
void scale(Context&, View x, float factor);
void add(Context&, const Add&);

void adam_update(Context&, const AdamUpdate&);
void onebit_freeze(Context&, const OnebitFreeze&);
void onebit_normalize(Context&, const OnebitNormalize&);
void onebit_momentum(Context&, const OnebitMomentum&);
void onebit_step(Context&, const OnebitStep&);

}  // namespace onebit::ops::cpu
