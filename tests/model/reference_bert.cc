#include "tests/model/reference_bert.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "onebit/math/kernels/dropout_mask.h"

namespace onebit::model {
namespace {

using Vector = std::vector<double>;

Vector sum_of(Vector x, const Vector& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  return x;
}

Vector scaled(Vector x, double factor) {
  for (double& value : x) value *= factor;
  return x;
}

double dot(const double* x, const double* y, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += x[i] * y[i];
  return sum;
}

double log_sum_exp(const Vector& x) {
  const double most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double value : x) sum += std::exp(value - most);
  return most + std::log(sum);
}

double cross_entropy(const Vector& logits, int32_t target) {
  return target < 0 ? 0 : log_sum_exp(logits) - logits[static_cast<size_t>(target)];
}

}  // namespace

ReferenceBert::ReferenceBert(const EncoderConfig& config, const ParameterTable& table)
    : config_(config) {
  for (const ParameterEntry& entry : table.entries()) {
    const View values = table.value_of(entry);
    values_[entry.name] = {values.data<float>(), values.data<float>() + values.elements()};
  }
}

Vector ReferenceBert::linear(const Vector& x, const std::string& name) const {
  const Vector& weight = value(name + ".weight");
  Vector y = value(name + ".bias");
  for (size_t out = 0; out < y.size(); ++out) {
    y[out] += dot(&weight[out * x.size()], x.data(), x.size());
  }
  return y;
}

Vector ReferenceBert::norm(const Vector& x, const std::string& name) const {
  const double count = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / count;
  for (const double value : x) variance += (value - mean) * (value - mean) / count;
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] =
        (x[i] - mean) / std::sqrt(variance + config_.layer_norm_eps) * value(name + ".weight")[i] +
        value(name + ".bias")[i];
  }
  return y;
}

Vector ReferenceBert::activate(Vector x) const {
  for (double& value : x) {
    if (config_.choices.activation == ChosenActivation::kGeluErf) {
      value *= 0.5 * (1 + std::erf(value / std::numbers::sqrt2));
    } else {
      const double inner = value + 0.044715 * value * value * value;
      value *= 0.5 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * inner));
    }
  }
  return x;
}

Vector ReferenceBert::drop(Vector x, double probability, const Place& place, DropoutSeed seed,
                           uint32_t first_column) const {
  const uint32_t threshold = kernels::dropout_threshold(static_cast<float>(probability));
  if (!seed || threshold == 0) return x;
  const kernels::DropoutKeys keys = kernels::dropout_keys(*seed);
  for (size_t i = 0; i < x.size(); ++i) {
    const uint32_t column = first_column + static_cast<uint32_t>(i);
    const bool kept = kernels::dropout_keeps(keys, place.site, place.row_key, column, threshold);
    x[i] = kept ? x[i] * 65536.0 / (65536.0 - threshold) : 0;
  }
  return x;
}

ReferenceBert::Matrix ReferenceBert::attention(const Matrix& x, int64_t layer,
                                               const TinyBatch& batch, size_t first, size_t last,
                                               DropoutSeed seed) const {
  const std::string name = fmt::format("bert.encoder.layer.{}.attention.", layer);
  const auto head_size = static_cast<size_t>(config_.head_size());
  Matrix query, key, values;
  for (size_t row = first; row < last; ++row) {
    query.push_back(linear(x[row], name + "self.query"));
    key.push_back(linear(x[row], name + "self.key"));
    values.push_back(linear(x[row], name + "self.value"));
  }
  Matrix result;
  for (size_t q = 0; q < query.size(); ++q) {
    Vector context(static_cast<size_t>(config_.hidden_size), 0.0);
    for (size_t head = 0; head < static_cast<size_t>(config_.heads); ++head) {
      const size_t at = head * head_size;
      Vector scores;
      for (const Vector& k : key) {
        scores.push_back(dot(&query[q][at], &k[at], head_size) /
                         std::sqrt(static_cast<double>(head_size)));
      }
      const double total = log_sum_exp(scores);
      for (double& score : scores) score = std::exp(score - total);
      scores = drop(scores, config_.attention_dropout,
                    {static_cast<uint32_t>(8 * layer + 1), batch.row_keys[first + q]}, seed,
                    static_cast<uint32_t>(head * 65536));
      for (size_t k = 0; k < key.size(); ++k) {
        for (size_t i = 0; i < head_size; ++i) context[at + i] += scores[k] * values[k][at + i];
      }
    }
    result.push_back(drop(linear(context, name + "output.dense"), config_.hidden_dropout,
                          {static_cast<uint32_t>(8 * layer + 2), batch.row_keys[first + q]}, seed));
  }
  return result;
}

ReferenceBert::Matrix ReferenceBert::layer(const Matrix& x, int64_t index, const TinyBatch& batch,
                                           DropoutSeed seed) const {
  const std::string name = fmt::format("bert.encoder.layer.{}.", index);
  const bool pre = config_.choices.norm_before;
  Matrix input = x;
  if (pre) {
    for (Vector& row : input) row = norm(row, name + "PreAttentionLayerNorm");
  }
  Matrix result;
  for (size_t s = 0; s + 1 < batch.starts.size(); ++s) {
    const auto first = static_cast<size_t>(batch.starts[s]);
    const auto last = static_cast<size_t>(batch.starts[s + 1]);
    const Matrix attended = attention(input, index, batch, first, last, seed);
    for (size_t row = first; row < last; ++row) {
      const Vector sum = sum_of(x[row], scaled(attended[row - first], factor(index)));
      const Vector middle = pre ? sum : norm(sum, name + "attention.output.LayerNorm");
      const Vector fed = pre ? norm(sum, name + "PostAttentionLayerNorm") : middle;
      const Vector wide = activate(linear(fed, name + "intermediate.dense"));
      const Vector out = drop(linear(wide, name + "output.dense"), config_.hidden_dropout,
                              {static_cast<uint32_t>(8 * index + 3), batch.row_keys[row]}, seed);
      const Vector end = sum_of(middle, scaled(out, factor(index)));
      result.push_back(pre ? end : norm(end, name + "output.LayerNorm"));
    }
  }
  return result;
}

ReferenceBert::Matrix ReferenceBert::hidden(const TinyBatch& batch, DropoutSeed seed) const {
  const auto width = static_cast<size_t>(config_.hidden_size);
  const auto table_row = [&](const char* name, int32_t index) {
    const Vector& table = value(std::string("bert.embeddings.") + name + "_embeddings.weight");
    const auto begin = table.begin() + index * static_cast<int64_t>(width);
    return Vector(begin, begin + static_cast<int64_t>(width));
  };
  Matrix x;
  for (size_t row = 0; row < batch.tokens.size(); ++row) {
    const Vector sum = sum_of(
        sum_of(table_row("word", batch.tokens[row]), table_row("position", batch.positions[row])),
        table_row("token_type", batch.segments[row]));
    x.push_back(drop(norm(sum, "bert.embeddings.LayerNorm"), config_.hidden_dropout,
                     {0, batch.row_keys[row]}, seed));
  }
  for (int64_t index = 0; index < config_.layers; ++index) {
    if (factor(index) != 0) x = layer(x, index, batch, seed);
  }
  if (config_.choices.norm_before) {
    for (Vector& row : x) row = norm(row, "bert.encoder.FinalLayerNorm");
  }
  return x;
}

Vector ReferenceBert::pooled(const Matrix& hidden, const TinyBatch& batch, size_t sequence) const {
  Vector result = linear(hidden[static_cast<size_t>(batch.starts[sequence])], "bert.pooler.dense");
  for (double& value : result) value = std::tanh(value);
  return result;
}

ReferenceBert::PreTrainingLoss ReferenceBert::pretraining(const TinyBatch& batch,
                                                          DropoutSeed seed) const {
  const Matrix states = hidden(batch, seed);
  const Vector& words = value("bert.embeddings.word_embeddings.weight");
  PreTrainingLoss loss;
  for (size_t item = 0; item < batch.masked_rows.size(); ++item) {
    const Vector state = norm(activate(linear(states[static_cast<size_t>(batch.masked_rows[item])],
                                              "cls.predictions.transform.dense")),
                              "cls.predictions.transform.LayerNorm");
    Vector logits = value("cls.predictions.bias");
    for (size_t word = 0; word < logits.size(); ++word) {
      logits[word] += dot(&words[word * state.size()], state.data(), state.size());
    }
    loss.masked_lm += cross_entropy(logits, batch.masked_targets[item]);
  }
  for (size_t s = 0; s < batch.next_sentence.size(); ++s) {
    loss.next_sentence += cross_entropy(linear(pooled(states, batch, s), "cls.seq_relationship"),
                                        batch.next_sentence[s]);
  }
  return loss;
}

double ReferenceBert::question_answering(const TinyBatch& batch, DropoutSeed seed,
                                         double head_dropout) const {
  const Matrix states = hidden(batch, seed);
  double loss = 0;
  for (size_t s = 0; s + 1 < batch.starts.size(); ++s) {
    Vector starts, ends;
    for (int32_t row = batch.starts[s]; row < batch.starts[s + 1]; ++row) {
      const auto at = static_cast<size_t>(row);
      const Vector read = drop(states[at], head_dropout, {4, batch.row_keys[at]}, seed);
      const Vector scores = linear(read, "qa_outputs");
      starts.push_back(scores[0]);
      ends.push_back(scores[1]);
    }
    loss += 0.5 * cross_entropy(starts, batch.span_starts[s]);
    loss += 0.5 * cross_entropy(ends, batch.span_ends[s]);
  }
  return loss;
}

Vector ReferenceBert::class_logits(const Matrix& hidden, const TinyBatch& batch, size_t sequence,
                                   DropoutSeed seed) const {
  const uint64_t row_key = batch.row_keys[static_cast<size_t>(batch.starts[sequence])];
  const Vector vector =
      drop(pooled(hidden, batch, sequence), config_.hidden_dropout, {4, row_key}, seed);
  return linear(vector, "classifier");
}

double ReferenceBert::classification(const TinyBatch& batch, DropoutSeed seed) const {
  const Matrix states = hidden(batch, seed);
  double loss = 0;
  for (size_t s = 0; s < batch.classes.size(); ++s) {
    loss += cross_entropy(class_logits(states, batch, s, seed), batch.classes[s]);
  }
  return loss;
}

double ReferenceBert::classification(const TinyBatch& batch, DropoutSeed seed,
                                     const LabelTerm& term) const {
  const Matrix states = hidden(batch, seed);
  double loss = 0;
  for (size_t s = 0; s + 1 < batch.starts.size(); ++s) {
    const Vector logits = class_logits(states, batch, s, seed);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double value = batch.label_values[s * logits.size() + i];
      loss += term(logits[i], value, i) / static_cast<double>(logits.size());
    }
  }
  return loss;
}

double ReferenceBert::tagging(const TinyBatch& batch, DropoutSeed seed) const {
  const Matrix states = hidden(batch, seed);
  double loss = 0;
  for (size_t i = 0; i < batch.tagged_rows.size(); ++i) {
    const auto row = static_cast<size_t>(batch.tagged_rows[i]);
    const Vector vector = drop(states[row], config_.hidden_dropout, {4, batch.row_keys[row]}, seed);
    loss += cross_entropy(linear(vector, "classifier"), batch.tags[i]);
  }
  return loss;
}

ReferenceBert::Matrix ReferenceBert::mean_vectors(const TinyBatch& batch, DropoutSeed seed) const {
  const Matrix states = hidden(batch, seed);
  Matrix means;
  for (size_t s = 0; s + 1 < batch.starts.size(); ++s) {
    const auto first = static_cast<size_t>(batch.starts[s]);
    const auto end = static_cast<size_t>(batch.starts[s + 1]);
    Vector mean(states[first].size(), 0.0);
    for (size_t row = first; row < end; ++row) {
      for (size_t i = 0; i < mean.size(); ++i) {
        mean[i] += states[row][i] / static_cast<double>(end - first);
      }
    }
    means.push_back(mean);
  }
  return means;
}

ReferenceBert::Matrix ReferenceBert::first_vectors(const TinyBatch& batch, DropoutSeed seed) const {
  const Matrix states = hidden(batch, seed);
  Matrix vectors;
  for (size_t s = 0; s + 1 < batch.starts.size(); ++s) {
    vectors.push_back(states[static_cast<size_t>(batch.starts[s])]);
  }
  return vectors;
}

}  // namespace onebit::model
