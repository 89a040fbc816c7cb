#include "onebit/math/model/memory_report.h"

namespace onebit::model {

std::vector<MemoryRow> memory_report(const ParameterTable& table, const MemoryPlan& reserved,
                                     DType compute) {
  const int64_t elements = table.size_elements();
  std::vector<MemoryRow> rows{{"values", 4 * elements}, {"gradients", 4 * elements}};
  if (compute != DType::kF32) rows.push_back({"compute copy", size_bytes_of(compute) * elements});
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
    const auto named = static_cast<MemoryKind>(kind);
    rows.push_back({std::string(name_of(named)), reserved.bytes(named)});
  }
  return rows;
}

std::vector<MemoryRow> memory_report(const EncoderConfig& config, const BatchLimits& limits,
                                     const MemoryOptions& options, DType compute,
                                     PreTrainingHeads heads, DeviceType device) {
  ParameterTable table;
  PreTrainingModel model(config, table, heads);
  MemoryPlan counted(device);
  model.reserve(counted, limits, options, true, compute);
  return memory_report(table, counted, compute);
}

int64_t total_bytes(const std::vector<MemoryRow>& rows) {
  int64_t total = 0;
  for (const MemoryRow& row : rows) total += row.bytes;
  return total;
}

double training_flops(const EncoderConfig& config, int64_t tokens, int64_t masked) {
  const double length = static_cast<double>(tokens), guessed = static_cast<double>(masked);
  const double hidden = static_cast<double>(config.hidden_size);
  const double wide = static_cast<double>(config.intermediate_size);
  const EncoderChoices& choices = config.choices;
  const double embedded = static_cast<double>(config.embedding_size());
  const double feed_matrices = choices.gated ? 3 : 2;
  const double linear = 2 * length * (4 * hidden * hidden + feed_matrices * hidden * wide);
  // Pairs of tokens: at both ends of a sequence, a window has fewer keys.
  const double window = static_cast<double>(choices.window);
  const double in_window =
      window < length ? length * (2 * window + 1) - window * (window + 1) : length * length;
  double attention = 0;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    attention += 4 * (choices.full_attention(layer) ? length * length : in_window) * hidden;
  }
  const double projection = config.has_projection() ? 2 * length * hidden * embedded : 0;
  const double vocab = static_cast<double>(config.vocab_size);
  const double head = choices.head_transform ? 2 * guessed * embedded * (hidden + vocab)
                                             : 2 * guessed * hidden * vocab;
  return 3 * (static_cast<double>(config.layers) * linear + attention + projection + head);
}

}  // namespace onebit::model
