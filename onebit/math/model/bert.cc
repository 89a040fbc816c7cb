#include "onebit/math/model/bert.h"

#include <algorithm>

#include "onebit/math/device/profile.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/layer_norm.h"

namespace onebit::model {

namespace {

const EncoderConfig& valid(const EncoderConfig& config) {
  validate(config, "model");
  return config;
}

}  // namespace

Bert::Bert(const EncoderConfig& config, ParameterTable& table)
    : config_(valid(config)),
      table_(&table),
      embeddings_(config, table),
      positions_(config, table) {
  if (config.has_first_norm()) {
    first_norm_ = declare_norm(table, "bert.encoder.layer.0.PreAttentionLayerNorm",
                               config.hidden_size, config.choices.norm_bias);
  }
  const auto& word = table.parameters()[embeddings_.word()];
  embedding_range_ = {word.range.begin, table.size_elements()};
  layers_.reserve(config.layers);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    layers_.emplace_back(config, table, layer);
  }
}

NormBuffers Bert::reserve_norm(MemoryPlan& memory, int64_t rows, bool keep_sum) const {
  const Shape shape{rows, config_.hidden_size};
  NormBuffers norm;
  if (keep_sum) norm.sum = memory.reserve(MemoryKind::kSaved, plan_.compute, shape);
  norm.y = memory.reserve(MemoryKind::kSaved, plan_.compute, shape);
  if (plan_.training) {
    norm.mean = memory.reserve(MemoryKind::kSaved, DType::kF32, {rows});
    norm.inverse_stddev = memory.reserve(MemoryKind::kSaved, DType::kF32, {rows});
  }
  return norm;
}

LayerBuffers Bert::reserve_layer(MemoryPlan& memory, int64_t later_rows) const {
  const int64_t rows = plan_.limits.rows, hidden = config_.hidden_size;
  const auto save = [&](int64_t count, int64_t columns) {
    return memory.reserve(MemoryKind::kSaved, plan_.compute, {count, columns});
  };
  LayerBuffers saved;
  saved.qkv = save(rows, 3 * hidden);
  saved.context = save(rows, hidden);
  if (plan_.training) {
    saved.log_sum_exp = memory.reserve(MemoryKind::kSaved, DType::kF32, {config_.heads * rows});
    const int64_t longest = plan_.limits.longest > 0 ? plan_.limits.longest : config_.max_positions;
    const int64_t words = layers_.front().kept_words(memory.type(), plan_.compute, longest);
    if (words > 0 && !plan_.memory.attention_dropout_checkpoint) {
      saved.kept = memory.reserve(MemoryKind::kSaved, DType::kU64, {config_.heads * rows * words});
    }
  }
  saved.attention_norm =
      reserve_norm(memory, later_rows, plan_.training && !plan_.memory.normalize_invertible);
  saved.pre_activation = save(later_rows, config_.feed_in_size());
  if (plan_.training && !plan_.memory.gelu_checkpoint) {
    saved.activated = save(later_rows, config_.intermediate_size);
  }
  return saved;
}

void Bert::reserve_scratch(MemoryPlan& memory, int64_t most_rows) {
  const int64_t rows = plan_.limits.rows, output = plan_.output_rows;
  const int64_t hidden = config_.hidden_size, wide = config_.intermediate_size;
  const auto scratch = [&](int64_t count, int64_t columns) {
    return memory.reserve(MemoryKind::kScratch, plan_.compute, {count, columns});
  };
  const auto gradient = [&](int64_t count) {
    return memory.reserve(MemoryKind::kGradients, plan_.compute, {count, hidden});
  };
  const bool all_sums = plan_.training && !plan_.memory.normalize_invertible;
  scratch_ = {};
  if (!all_sums) scratch_.branch = scratch(most_rows, hidden);
  if (!all_sums && config_.choices.norm_before) scratch_.residual = scratch(rows, hidden);
  if (!plan_.training || plan_.memory.gelu_checkpoint)
    scratch_.activated = scratch(most_rows, wide);
  if (output > 0) {
    scratch_.output_context = scratch(output, hidden);
    scratch_.output_residual = scratch(output, hidden);
    if (plan_.training) {
      scratch_.output_row_keys = memory.reserve(MemoryKind::kScratch, DType::kU64, {output});
    }
  }
  if (!plan_.training) return;
  scratch_.grad_y = gradient(rows);
  scratch_.grad_residual = gradient(rows);
  scratch_.grad_context = gradient(rows);
  scratch_.grad_wide =
      memory.reserve(MemoryKind::kGradients, plan_.compute,
                     {std::max(most_rows * config_.feed_in_size(), rows * 3 * hidden)});
  if (output > 0) {
    scratch_.output_grad_y = gradient(output);
    scratch_.output_grad_residual = gradient(output);
    scratch_.output_grad_context = gradient(output);
  }
}

void Bert::reserve(MemoryPlan& memory, const EncoderPlan& plan) {
  plan_ = plan;
  const int64_t rows = plan.limits.rows;
  const int64_t last_rows = plan.output_rows > 0 ? plan.output_rows : rows;
  const int64_t most_rows = std::max(rows, last_rows);
  const MemoryOptions& options = plan.memory;
  streams_.clear();
  saved_.clear();
  embeddings_.reserve(memory, plan.limits, plan.training, plan.compute);
  positions_.reserve(memory, plan.training);
  // Layers share buffers that are not read after them. Evaluation alternates between two streams.
  const bool share = !plan.training || options.full_recomputation;
  const int64_t streams = plan.training ? config_.layers + 1 : 2;
  for (int64_t index = 0; index < streams; ++index) {
    const bool embedded = index == 0 && !config_.has_first_norm();
    const bool needed_again = config_.choices.norm_before && options.full_recomputation;
    const bool keep_sum =
        plan.training && !embedded && (!options.normalize_invertible || needed_again);
    const bool last = plan.training && index == config_.layers;
    const int64_t stream_rows = last ? last_rows : plan.training ? rows : most_rows;
    streams_.push_back(reserve_norm(memory, stream_rows, keep_sum));
  }
  for (int64_t index = 0; index < (share ? 1 : config_.layers); ++index) {
    const bool last = index + 1 == config_.layers;
    saved_.push_back(reserve_layer(memory, share ? most_rows : last ? last_rows : rows));
  }
  reserve_scratch(memory, most_rows);
}

const NormBuffers& Bert::stream(int64_t index) const {
  return streams_[plan_.training ? index : index % 2];
}

int64_t Bert::next_layer(int64_t layer, const TrainingPass* pass) const {
  int64_t next = layer + 1;
  if (pass == nullptr || pass->layer_factors.empty()) return next;
  while (next < config_.layers && pass->layer_factors[next] == 0) ++next;
  return next;
}

LayerPass Bert::layer_pass(int64_t layer, const DeviceBatch& batch, OutputRows output_rows,
                           const TrainingPass* pass) const {
  const int64_t next = next_layer(layer, pass);
  const bool last = next == config_.layers;
  const bool is_scaled = pass != nullptr && !pass->layer_factors.empty();
  const EncoderLayer& before_next = layers_[next - 1];
  return {.batch = &batch,
          .training = pass,
          .output_rows = last ? output_rows : OutputRows(),
          .output_count = last ? output_count_ : batch.rows(),
          .last = last,
          .factor = is_scaled ? pass->layer_factors[layer] : 1,
          .input = &stream(layer),
          .saved = &saved_[saved_.size() == 1 ? 0 : static_cast<size_t>(layer)],
          .output = &stream(next),
          .output_norm = &before_next.output_norm(),
          .gradients_end = before_next.end(),
          .scratch = &scratch_,
          .positions = &positions_};
}

void Bert::check(const DeviceBatch& batch, OutputRows output_rows, const TrainingPass* pass) const {
  const BatchLimits& limits = plan_.limits;
  require(batch.rows() <= limits.rows,
          "a micro-batch has {} tokens, but the model was planned for {}", batch.rows(),
          limits.rows);
  require(batch.sequences() <= limits.sequences,
          "a micro-batch has {} sequences, but the model was planned for {}", batch.sequences(),
          limits.sequences);
  // Training keeps the bits of attention's dropout, for which memory depends on the longest.
  const int64_t longest = batch.sequence_starts.longest();
  require(pass == nullptr || limits.longest == 0 || longest <= limits.longest,
          "a micro-batch has a sequence of {} tokens, but the model was planned for {}", longest,
          limits.longest);
  require(pass == nullptr || plan_.training,
          "the model was planned for evaluation only; plan it for training");
  int64_t outputs = 0;
  for (const ConstView& rows : output_rows) outputs += rows.elements();
  require(output_rows.empty() || outputs <= plan_.output_rows,
          "a micro-batch requests {} output rows, but the model was planned for {}", outputs,
          plan_.output_rows);
  ONEBIT_INVARIANT(!output_rows.empty() || plan_.output_rows == 0);
  if (pass == nullptr || pass->layer_factors.empty()) return;
  ONEBIT_INVARIANT(config_.choices.norm_before);
  ONEBIT_INVARIANT(static_cast<int64_t>(pass->layer_factors.size()) == config_.layers);
  ONEBIT_INVARIANT(pass->layer_factors.front() != 0);
  // Any layer may be the last one computed, but only the model's last layer has room for more rows.
  require(outputs <= limits.rows,
          "a micro-batch requests {} output rows; at most {} are possible when layers are dropped",
          outputs, limits.rows);
}

void Bert::embed(Context& context, const DeviceBatch& batch, const TrainingPass* pass) {
  const PhaseSpan phase(context, kEmbeddingsForward);
  const NormBuffers& first = stream(0);
  const int64_t rows = batch.rows();
  if (!config_.has_first_norm()) {
    embeddings_.forward(context, batch, pass, rows_of(first.y, rows));
    return;
  }
  const View sum = rows_of(first.sum.empty() ? scratch_.residual : first.sum, rows);
  embeddings_.forward(context, batch, pass, sum);
  ops::layer_norm(context, {.kind = config_.choices.norm,
                            .x = sum,
                            .gamma = table_->value(first_norm_.gamma),
                            .beta = value_or_none(*table_, first_norm_.beta),
                            .epsilon = static_cast<float>(config_.layer_norm_eps),
                            .y = rows_of(first.y, rows),
                            .mean = rows_of(first.mean, rows),
                            .inverse_stddev = rows_of(first.inverse_stddev, rows)});
}

View Bert::forward(Context& context, const DeviceBatch& batch, OutputRows output_rows,
                   const TrainingPass* pass) {
  check(batch, output_rows, pass);
  output_count_ = output_rows.empty() ? batch.rows() : 0;
  for (const ConstView& rows : output_rows) output_count_ += rows.elements();
  embed(context, batch, pass);
  const PhaseSpan phase(context, kEncoderForward);
  positions_.forward(context);
  for (int64_t layer = 0; layer < config_.layers; layer = next_layer(layer, pass)) {
    layers_[layer].forward(context, layer_pass(layer, batch, output_rows, pass));
  }
  return rows_of(stream(config_.layers).y, output_count_);
}

View Bert::output_gradient() const {
  return rows_of(plan_.output_rows > 0 ? scratch_.output_grad_y : scratch_.grad_y, output_count_);
}

void Bert::embed_backward(Context& context, const DeviceBatch& batch, const TrainingPass& pass) {
  const PhaseSpan phase(context, kEmbeddingsBackward);
  const NormBuffers& first = stream(0);
  const int64_t rows = batch.rows();
  const View grad = rows_of(scratch_.grad_y, rows);
  const View grad_residual = rows_of(scratch_.grad_residual, rows);
  if (config_.has_first_norm()) {
    ops::residual_norm_backward(context,
                                {.kind = config_.choices.norm,
                                 .grad_y = grad,
                                 .grad_sum_extra = grad_residual,
                                 .sum = rows_of(first.sum, rows),
                                 .y = rows_of(first.y, rows),
                                 .gamma = table_->value(first_norm_.gamma),
                                 .beta = value_or_none(*table_, first_norm_.beta),
                                 .mean = rows_of(first.mean, rows),
                                 .inverse_stddev = rows_of(first.inverse_stddev, rows),
                                 .grad_residual = grad,
                                 .grad_gamma = table_->gradient(first_norm_.gamma),
                                 .grad_beta = gradient_or_none(*table_, first_norm_.beta)});
  } else {
    ops::add(context, {.x = grad_residual, .y = grad});
  }
  embeddings_.backward(context, batch, pass, grad);
  if (pass.gradients_ready) pass.gradients_ready(embedding_range_);
}

void Bert::backward(Context& context, const DeviceBatch& batch, OutputRows output_rows,
                    const TrainingPass& pass) {
  layers_backward(context, batch, output_rows, pass);
  embed_backward(context, batch, pass);
}

void Bert::layers_backward(Context& context, const DeviceBatch& batch, OutputRows output_rows,
                           const TrainingPass& pass) {
  const PhaseSpan phase(context, kEncoderBackward);
  positions_.clear_gradient(context);
  for (int64_t layer = config_.layers - 1; layer >= 0; --layer) {
    if (next_layer(layer - 1, &pass) != layer) continue;  // left out
    const LayerPass call = layer_pass(layer, batch, output_rows, &pass);
    const EncoderLayer& block = layers_[layer];
    // The shared buffers still contain the activations of the last computed layer.
    const bool again = plan_.memory.full_recomputation && !call.last;
    if (again) block.forward(context, call);
    block.backward(context, call);
  }
  positions_.backward(context);
}

}  // namespace onebit::model
