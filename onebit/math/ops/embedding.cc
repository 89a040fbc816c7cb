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

void check_table(const kernels::ArgumentCheck& check, const char* name, const ConstView& table,
                 const char* ids_name, const ConstView& ids, DType dtype, const ConstView& rows) {
  check.leading(name, table, 2);
  check.view(name, table, dtype, {table.extent(0), rows.extent(1)});
  check.view(ids_name, ids, DType::kI32, {rows.extent(0)});
}

// Checks the arguments that both directions share, where `a` is Embedding or EmbeddingBackward and
// `rows` is y or its gradient.
template <class Arguments>
void check_inputs(const kernels::ArgumentCheck& check, const Arguments& a, const ConstView& rows) {
  const DType dtype = a.word.dtype();
  check_table(check, "word", a.word, "tokens", a.tokens, dtype, rows);
  if (!a.position.empty()) {
    check_table(check, "position", a.position, "positions", a.positions, dtype, rows);
  }
  if (!a.segment.empty()) {
    check_table(check, "segment", a.segment, "segments", a.segments, dtype, rows);
  }
  check.that(dtype == DType::kF32 || dtype == rows.dtype(),
             "the tables must be f32 or of the type of the rows");
  check.optional("gamma", a.gamma, DType::kF32, {rows.extent(1)});
  check.dropout(a.dropout, rows.extent(0));
}

// The gradient of a table or a parameter, which is there if that is.
void check_gradient(const kernels::ArgumentCheck& check, const char* name, const View& gradient,
                    const ConstView& of) {
  if (!of.empty()) check.view(name, gradient, DType::kF32, of.shape());
}

}  // namespace

void embedding(Context& context, const Embedding& a) {
  const kernels::ArgumentCheck check(context, "embedding");
  check.leading("y", a.y, 2);
  check_inputs(check, a, a.y);
  const int64_t rows = a.y.extent(0), hidden = a.y.extent(1);
  check.optional("beta", a.beta, DType::kF32, {hidden});
  check.optional("inverse_stddev", a.inverse_stddev, DType::kF32, {rows});
  check.that(!a.gamma.empty() || (a.beta.empty() && a.inverse_stddev.empty()),
             "without gamma there is no norm, so beta and inverse_stddev must be empty");
  if (a.kind == NormKind::kLayer) {
    check.optional("mean", a.mean, DType::kF32, {rows});
    check.that(a.mean.empty() == a.inverse_stddev.empty(),
               "mean and inverse_stddev must be given together");
  }
  on_device::embedding(context, a);
}

void embedding_backward(Context& context, const EmbeddingBackward& a) {
  const kernels::ArgumentCheck check(context, "embedding_backward");
  check.leading("grad_y", a.grad_y, 2);
  check_inputs(check, a, a.grad_y);
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  if (!a.gamma.empty()) {
    check.view("inverse_stddev", a.inverse_stddev, DType::kF32, {rows});
    if (a.kind == NormKind::kLayer) check.view("mean", a.mean, DType::kF32, {rows});
    check.optional("grad_beta", a.grad_beta, DType::kF32, {hidden});
  }
  check_gradient(check, "grad_word", a.grad_word, a.word);
  check_gradient(check, "grad_position", a.grad_position, a.position);
  check_gradient(check, "grad_segment", a.grad_segment, a.segment);
  check_gradient(check, "grad_gamma", a.grad_gamma, a.gamma);
  on_device::embedding_backward(context, a);
}

}  // namespace onebit::ops
