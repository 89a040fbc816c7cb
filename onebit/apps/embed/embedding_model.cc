#include "onebit/apps/embed/embedding_model.h"

#include <array>
#include <numeric>
#include <span>

#include "onebit/math/device/profile.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/rows.h"

namespace onebit::embed {

EmbeddingModel::EmbeddingModel(const model::EncoderConfig& config, Pooling pooling,
                               ParameterTable& table)
    : bert_(config, table), pooling_(pooling) {}

model::MemoryPlan EmbeddingModel::plan(Context& context, const model::BatchLimits& limits,
                                       const model::MemoryOptions& memory, bool training) {
  const bool first_only = pooling_ == Pooling::kFirst;
  model::MemoryPlan reserved(context.device());
  bert_.reserve(reserved, {.limits = limits,
                           .output_rows = first_only ? limits.sequences : 0,
                           .memory = memory,
                           .training = training,
                           .compute = bert_.table().compute_type()});
  const Shape shape{limits.sequences, hidden()};
  vectors_ = reserved.reserve(model::MemoryKind::kHead, DType::kF32, shape);
  if (first_only) {
    host_single_rows_.resize(static_cast<size_t>(limits.sequences) + 1);
    std::iota(host_single_rows_.begin(), host_single_rows_.end(), 0);
    single_rows_ = reserved.reserve(model::MemoryKind::kHead, DType::kI32, {limits.sequences + 1});
    copy(single_rows_.view(), ConstView::of(host_single_rows_.data(), {limits.sequences + 1}));
  }
  grad_vectors_ = Tensor();
  if (!training) return reserved;
  grad_vectors_ = reserved.reserve(model::MemoryKind::kHead, DType::kF32, shape);
  const int64_t size_bytes = shape.elements() * size_bytes_of(DType::kF32);
  host_vectors_ = Staging(context.device(), size_bytes);
  host_gradients_ = Staging(context.device(), size_bytes);
  return reserved;
}

SequenceStarts EmbeddingModel::pooled_starts(const model::DeviceBatch& batch) const {
  if (pooling_ == Pooling::kMean) return batch.sequence_starts;
  const int64_t count = batch.sequences() + 1;
  return {.device = single_rows_.first_rows(count),
          .host = std::span(host_single_rows_).first(count)};
}

View EmbeddingModel::pool(Context& context, const model::DeviceBatch& batch,
                          ConstView hidden) const {
  const PhaseSpan phase(context, model::kHeadsForward);
  const View vectors = model::rows_of(vectors_, batch.sequences());
  ops::sequence_mean(context, {.x = hidden, .sequence_starts = pooled_starts(batch), .y = vectors});
  return vectors;
}

void EmbeddingModel::forward_backward(Context& context, const model::DeviceBatch& batch,
                                      const Loss& loss, const model::TrainingPass& pass) {
  const std::array<ConstView, 1> first{batch.first_rows()};
  const model::OutputRows output_rows =
      pooling_ == Pooling::kFirst ? model::OutputRows(first) : model::OutputRows();
  const View vectors = pool(context, batch, bert_.forward(context, batch, output_rows, &pass));
  const View gradients = model::rows_of(grad_vectors_, batch.sequences());
  host_vectors_.download(context, vectors.raw(), vectors.size_bytes());
  host_vectors_.wait();
  loss(ConstView(host_vectors_.data(), DType::kF32, vectors.shape(), Device{}),
       View(host_gradients_.data(), DType::kF32, vectors.shape(), Device{}));
  host_gradients_.upload(context, gradients.raw(), gradients.size_bytes());
  if (pass.forward_done) pass.forward_done();
  {
    const PhaseSpan phase(context, model::kHeadsBackward);
    ops::sequence_mean_backward(context, {.grad_y = gradients,
                                          .sequence_starts = pooled_starts(batch),
                                          .grad_x = bert_.output_gradient()});
  }
  bert_.backward(context, batch, output_rows, pass);
  host_gradients_.wait();
}

Tensor EmbeddingModel::encode(Context& context, const model::DeviceBatch& batch) {
  const std::array<ConstView, 1> first{batch.first_rows()};
  const model::OutputRows output_rows =
      pooling_ == Pooling::kFirst ? model::OutputRows(first) : model::OutputRows();
  return to_cpu_f32(pool(context, batch, bert_.forward(context, batch, output_rows, nullptr)));
}

}  // namespace onebit::embed
