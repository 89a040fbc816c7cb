// Stands in for the CUDA halves of the operations where CUDA is not built. Every entry throws its
// own name.
#include <string_view>

#include "onebit/base/error.h"
#include "onebit/ops/cuda_ops.h"

namespace onebit::ops::cuda {
namespace {

[[noreturn]] void absent(std::string_view operation) {
  fail("{}: this onebit was built without CUDA: use --device cpu, or build with -DONEBIT_CUDA=ON",
       operation);
}

}  // namespace

void dropout(Context&, const DropoutForward&) {
  absent("dropout");
}
bool matrix_product(Context&, const MatrixProduct&) {
  absent("matrix_product");
}
bool bf16_is_native(Context&) {
  absent("bf16_is_native");
}
void activation(Context&, const Activation&) {
  absent("activation");
}
void activation_backward(Context&, const ActivationBackward&) {
  absent("activation_backward");
}
void layer_norm(Context&, const LayerNorm&) {
  absent("layer_norm");
}
void layer_norm_backward(Context&, const LayerNormBackward&) {
  absent("layer_norm_backward");
}
void residual_norm(Context&, const ResidualNorm&) {
  absent("residual_norm");
}
void residual_norm_backward(Context&, const ResidualNormBackward&) {
  absent("residual_norm_backward");
}
void residual_add(Context&, const ResidualAdd&) {
  absent("residual_add");
}
void residual_add_backward(Context&, const ResidualAddBackward&) {
  absent("residual_add_backward");
}
void embedding(Context&, const Embedding&) {
  absent("embedding");
}
void embedding_backward(Context&, const EmbeddingBackward&) {
  absent("embedding_backward");
}
void attention(Context&, const Attention&) {
  absent("attention");
}
void attention_backward(Context&, const AttentionBackward&) {
  absent("attention_backward");
}
void cross_entropy(Context&, const CrossEntropy&) {
  absent("cross_entropy");
}
void span_cross_entropy(Context&, const SpanCrossEntropy&) {
  absent("span_cross_entropy");
}
void gather_rows(Context&, const GatherRows&) {
  absent("gather_rows");
}
void scatter_add_rows(Context&, const ScatterAddRows&) {
  absent("scatter_add_rows");
}
double squared_norm(Context&, ConstView) {
  absent("squared_norm");
}
double absolute_sum(Context&, ConstView) {
  absent("absolute_sum");
}
double dot(Context&, ConstView, ConstView) {
  absent("dot");
}
double sum(Context&, ConstView) {
  absent("sum");
}
bool all_finite(Context&, ConstView) {
  absent("all_finite");
}
void column_sum(Context&, const ColumnSum&) {
  absent("column_sum");
}
void cast(Context&, const Cast&) {
  absent("cast");
}
void fill(Context&, View, float) {
  absent("fill");
}
void scale(Context&, View, float) {
  absent("scale");
}
void add(Context&, const Add&) {
  absent("add");
}
void adam_update(Context&, const AdamUpdate&) {
  absent("adam_update");
}
void onebit_freeze(Context&, const OnebitFreeze&) {
  absent("onebit_freeze");
}
void onebit_normalize(Context&, const OnebitNormalize&) {
  absent("onebit_normalize");
}
void onebit_momentum(Context&, const OnebitMomentum&) {
  absent("onebit_momentum");
}
void onebit_step(Context&, const OnebitStep&) {
  absent("onebit_step");
}

}  // namespace onebit::ops::cuda
