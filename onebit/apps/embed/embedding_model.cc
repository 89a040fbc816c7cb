#include "onebit/apps/embed/embedding_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "onebit/ground/base/error.h"
#include "onebit/math/device/profile.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/rows.h"
#include "onebit/math/tensor/view.h"

namespace onebit::embed {
namespace {

using formats::SentencePooling;

// The tokens of one sequence that count, and what comes before them.
struct Tokens {
  const float* rows;  // [left_out + count, hidden]
  int64_t left_out, count, hidden;

  const float* row(int64_t token) const { return rows + (left_out + token) * hidden; }
};

void take_largest(const Tokens& tokens, float* vector) {
  std::copy_n(tokens.row(0), tokens.hidden, vector);
  for (int64_t t = 1; t < tokens.count; ++t) {
    const float* row = tokens.row(t);
    for (int64_t i = 0; i < tokens.hidden; ++i) {
      // A number that is not finite must show.
      if (row[i] > vector[i] || std::isnan(row[i])) vector[i] = row[i];
    }
  }
}

// A token keeps the weight of its place in the whole text where a prompt is left out.
double weight_of(SentencePooling mode, const Tokens& tokens, int64_t token) {
  if (mode != SentencePooling::kWeightedMean) return 1;
  return static_cast<double>(tokens.left_out + token + 1);
}

void take_mean(SentencePooling mode, const Tokens& tokens, std::vector<double>& sums,
               float* vector) {
  sums.assign(static_cast<size_t>(tokens.hidden), 0);
  double weights = 0;
  for (int64_t t = 0; t < tokens.count; ++t) {
    const double weight = weight_of(mode, tokens, t);
    const float* row = tokens.row(t);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * double{row[i]};
    weights += weight;
  }
  if (mode == SentencePooling::kMeanSqrtLength) weights = std::sqrt(weights);
  for (size_t i = 0; i < sums.size(); ++i) vector[i] = static_cast<float>(sums[i] / weights);
}

void pool(SentencePooling mode, const Tokens& tokens, std::vector<double>& sums, float* vector) {
  switch (mode) {
    case SentencePooling::kFirst:
      std::copy_n(tokens.row(0), tokens.hidden, vector);
      return;
    case SentencePooling::kLast:
      std::copy_n(tokens.row(tokens.count - 1), tokens.hidden, vector);
      return;
    case SentencePooling::kMax:
      take_largest(tokens, vector);
      return;
    case SentencePooling::kMean:
    case SentencePooling::kMeanSqrtLength:
    case SentencePooling::kWeightedMean:
      take_mean(mode, tokens, sums, vector);
  }
}

}  // namespace

void pool_sequences(const Context& context, const PoolSequences& call) {
  const auto sequences = static_cast<int64_t>(call.starts.size()) - 1;
  const auto modes = static_cast<int64_t>(call.modes.size());
  context.parallel_for(sequences, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> sums;
    for (int64_t s = begin; s < end; ++s) {
      const auto index = static_cast<size_t>(s);
      const int64_t first = call.starts[index], length = call.starts[index + 1] - first;
      const int64_t left_out = index < call.left_out.size() ? call.left_out[index] : 0;
      require(left_out < length,
              "the model leaves the prompt's {} tokens out of its pooling (include_prompt), and "
              "the text has {}: none is left",
              left_out, length);
      const Tokens tokens{.rows = call.rows + first * call.hidden,
                          .left_out = left_out,
                          .count = length - left_out,
                          .hidden = call.hidden};
      for (int64_t mode = 0; mode < modes; ++mode) {
        pool(call.modes[static_cast<size_t>(mode)], tokens, sums,
             call.vectors + (s * modes + mode) * call.hidden);
      }
    }
  });
}

EmbeddingModel::EmbeddingModel(const model::EncoderConfig& config, Pooling pooling,
                               ParameterTable& table)
    : bert_(config, table), pooling_(std::move(pooling)) {}

model::MemoryPlan EmbeddingModel::plan(Context& context, const model::BatchLimits& limits,
                                       const model::MemoryOptions& memory, bool training) {
  const bool first_only = pooling_.reads_first_only();
  model::MemoryPlan reserved(context.device());
  bert_.reserve(reserved, {.limits = limits,
                           .output_rows = !first_only                 ? 0
                                          : pooling_.has_token_states ? limits.rows
                                                                      : limits.sequences,
                           .memory = memory,
                           .training = training,
                           .compute = bert_.table().compute_type()});
  const Shape shape{limits.sequences, hidden()};
  vectors_ = reserved.reserve(model::MemoryKind::kHead, DType::kF32, shape);
  if (first_only) {
    const int64_t rows = pooling_.has_token_states ? limits.rows : 0;
    const int64_t count = std::max(limits.sequences + 1, rows);
    host_single_rows_.resize(static_cast<size_t>(count));
    std::iota(host_single_rows_.begin(), host_single_rows_.end(), 0);
    single_rows_ = reserved.reserve(model::MemoryKind::kHead, DType::kI32, {count});
    copy(single_rows_.view(), ConstView::of(host_single_rows_.data(), {count}));
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
  if (!pooling_.reads_first_only()) return batch.sequence_starts;
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
      pooling_.reads_first_only() ? model::OutputRows(first) : model::OutputRows();
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

bool EmbeddingModel::is_trainable(const Pooling& pooling) {
  using enum formats::SentencePooling;
  return pooling.modes == std::vector{kMean} || pooling.modes == std::vector{kFirst};
}

bool EmbeddingModel::pools_on_device(std::span<const int32_t> left_out) const {
  const bool is_whole = std::ranges::all_of(left_out, [](int32_t tokens) { return tokens == 0; });
  const bool is_mean = pooling_.modes == std::vector{formats::SentencePooling::kMean};
  return is_whole && (is_mean || pooling_.reads_first_only());
}

Tensor EmbeddingModel::encode(Context& context, const model::DeviceBatch& batch,
                              std::span<const int32_t> left_out) {
  const std::array<ConstView, 1> first{batch.first_rows()};
  const model::OutputRows output_rows =
      pooling_.reads_first_only() ? model::OutputRows(first) : model::OutputRows();
  const ConstView hidden_states = bert_.forward(context, batch, output_rows, nullptr);
  if (pools_on_device(left_out)) return to_cpu_f32(pool(context, batch, hidden_states));
  const Tensor rows = to_cpu_f32(hidden_states);
  Tensor vectors(Device{}, DType::kF32, {batch.sequences(), vector_length()});
  pool_sequences(context, {.rows = rows.data<float>(),
                           .hidden = hidden(),
                           .starts = batch.sequence_starts.host,
                           .left_out = left_out,
                           .modes = pooling_.modes,
                           .vectors = vectors.data<float>()});
  return vectors;
}

Tensor EmbeddingModel::token_states(Context& context, const model::DeviceBatch& batch) {
  const std::array<ConstView, 1> all{
      pooling_.reads_first_only() ? ConstView(single_rows_.first_rows(batch.rows())) : ConstView()};
  const model::OutputRows output_rows =
      pooling_.reads_first_only() ? model::OutputRows(all) : model::OutputRows();
  return to_cpu_f32(bert_.forward(context, batch, output_rows, nullptr));
}

namespace {

using formats::DenseActivation;
using formats::DenseModule;

double softplus(double x) {
  constexpr double kLinearFrom = 20;  // as in torch
  return x > kLinearFrom ? x : std::log1p(std::exp(x));
}

double activated(DenseActivation activation, double x) {
  switch (activation) {
    case DenseActivation::kIdentity:
      return x;
    case DenseActivation::kTanh:
      return std::tanh(x);
    case DenseActivation::kRelu:
      return x < 0 ? 0 : x;
    case DenseActivation::kRelu6:
      return x < 0 ? 0 : x > 6 ? 6 : x;
    case DenseActivation::kLeakyRelu:
      return x > 0 ? x : 0.01 * x;
    case DenseActivation::kElu:
      return x > 0 ? x : std::expm1(x);
    case DenseActivation::kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case DenseActivation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case DenseActivation::kSilu:
      return x / (1 + std::exp(-x));
    case DenseActivation::kMish:
      return x * std::tanh(softplus(x));
    case DenseActivation::kSoftplus:
      return softplus(x);
    case DenseActivation::kSoftsign:
      return x / (1 + std::abs(x));
  }
  return x;
}

ConstView view_of(const std::vector<float>& values, Shape shape) {
  return values.empty() ? ConstView() : ConstView::of(values.data(), shape);
}

std::vector<float> apply_layer(Context& context, const DenseModule& module,
                               const std::vector<float>& x) {
  const auto count = static_cast<int64_t>(x.size()) / module.inputs;
  std::vector<float> y(static_cast<size_t>(count * module.outputs));
  const Shape matrix{module.outputs, module.inputs}, shape{count, module.outputs};
  const ConstView rows = view_of(x, {count, module.inputs});
  ops::linear(context, {.x = rows,
                        .weight = view_of(module.weight, matrix),
                        .bias = view_of(module.bias, {module.outputs}),
                        .y = View::of(y.data(), shape)});
  std::vector<float> residual;
  if (!module.residual.empty()) {
    residual.resize(y.size());
    ops::linear(context, {.x = rows,
                          .weight = view_of(module.residual, matrix),
                          .bias = {},
                          .y = View::of(residual.data(), shape)});
  }
  const std::vector<float>& added = module.residual.empty() ? x : residual;
  for (size_t i = 0; i < y.size(); ++i) {
    double value = activated(module.activation, double{y[i]});
    if (module.has_residual) value += double{added[i]};
    y[i] = static_cast<float>(value);
  }
  return y;
}

}  // namespace

DenseLayers::DenseLayers(Context& context, const std::vector<DenseModule>& modules)
    : model_context_(context), modules_(modules) {
  if (!context.device().is_cpu()) host_ = Context::cpu(context.threads());
}

Context& DenseLayers::context() {
  return host_ ? *host_ : model_context_;
}

std::vector<float> DenseLayers::apply(std::vector<float> vectors) {
  if (vectors.empty()) return vectors;
  for (const DenseModule& module : modules_) vectors = apply_layer(context(), module, vectors);
  return vectors;
}

}  // namespace onebit::embed
