#include "onebit/math/ops/embedding.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

// Each output row reads one row of each of the three tables.
static Work work_of(const Embedding& a) {
  return kernels::moves(a.y, a.y, a.y, a.y);
}
static Work work_of(const EmbeddingBackward& a) {
  return kernels::moves(a.grad_y, a.grad_y, a.grad_y, a.grad_y);
}

ONEBIT_DEVICE_OP(void, embedding, const Embedding&);
ONEBIT_DEVICE_OP(void, embedding_backward, const EmbeddingBackward&);

namespace {

// Checks the arguments that both directions share, where `a` is Embedding or EmbeddingBackward.
template <class Arguments>
void check_inputs(const kernels::ArgumentCheck& check, const Arguments& a, int64_t rows,
                  int64_t hidden) {
  check.view("tokens", a.tokens, DType::kI32, {rows});
  check.view("positions", a.positions, DType::kI32, {rows});
  check.view("segments", a.segments, DType::kI32, {rows});
  check.leading("word", a.word, 2);
  check.leading("position", a.position, 2);
  check.leading("segment", a.segment, 2);
  check.view("word", a.word, a.word.dtype(), {a.word.extent(0), hidden});
  check.view("position", a.position, a.word.dtype(), {a.position.extent(0), hidden});
  check.view("segment", a.segment, a.word.dtype(), {a.segment.extent(0), hidden});
  check.view("gamma", a.gamma, DType::kF32, {hidden});
  check.dropout(a.dropout, rows);
}

}  // namespace

void embedding(Context& context, const Embedding& a) {
  const kernels::ArgumentCheck check(context, "embedding");
  check.leading("y", a.y, 2);
  const int64_t rows = a.y.extent(0), hidden = a.y.extent(1);
  check_inputs(check, a, rows, hidden);
  check.that(a.word.dtype() == DType::kF32 || a.word.dtype() == a.y.dtype(),
             "the tables must be f32 or of the type of y");
  check.view("beta", a.beta, DType::kF32, {hidden});
  check.optional("mean", a.mean, DType::kF32, {rows});
  check.optional("inverse_stddev", a.inverse_stddev, DType::kF32, {rows});
  check.that(a.mean.empty() == a.inverse_stddev.empty(),
             "mean and inverse_stddev must be given together");
  on_device::embedding(context, a);
}

void embedding_backward(Context& context, const EmbeddingBackward& a) {
  const kernels::ArgumentCheck check(context, "embedding_backward");
  check.leading("grad_y", a.grad_y, 2);
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  check_inputs(check, a, rows, hidden);
  check.that(a.word.dtype() == DType::kF32 || a.word.dtype() == a.grad_y.dtype(),
             "the tables must be f32 or of the type of grad_y");
  check.view("mean", a.mean, DType::kF32, {rows});
  check.view("inverse_stddev", a.inverse_stddev, DType::kF32, {rows});
  check.view("grad_word", a.grad_word, DType::kF32, a.word.shape());
  check.view("grad_position", a.grad_position, DType::kF32, a.position.shape());
  check.view("grad_segment", a.grad_segment, DType::kF32, a.segment.shape());
  check.view("grad_gamma", a.grad_gamma, DType::kF32, {hidden});
  check.view("grad_beta", a.grad_beta, DType::kF32, {hidden});
  on_device::embedding_backward(context, a);
}

}  // namespace onebit::ops
