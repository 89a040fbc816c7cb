#include "onebit/formats/bert_shape.h"

#include <set>
#include <vector>

#include "onebit/base/config_keys.h"
#include "onebit/base/error.h"
#include "onebit/formats/name_tables.h"
#include "onebit/formats/quote.h"

namespace onebit::formats {
namespace {

const TensorEntry& matrix_named(std::span<const TensorEntry> ours, std::string_view name,
                                const std::string& place) {
  for (const TensorEntry& entry : ours) {
    if (entry.name != name) continue;
    require(entry.shape.rank() == 2 && entry.shape[0] > 0 && entry.shape[1] > 0,
            "{}: tensor {} has shape {}; a matrix was expected", place, quote(name),
            to_string(entry.shape));
    return entry;
  }
  fail("{}: tensor {} is missing; a BERT's encoder has it", place, quote(name));
}

int64_t count_layers(std::span<const TensorEntry> ours, const std::string& place) {
  std::set<int> layers;
  for (const TensorEntry& entry : ours) {
    // The layer's number is before the first dot after the prefix.
    constexpr std::string_view kPrefix = "bert.encoder.layer.";
    if (!entry.name.starts_with(kPrefix)) continue;
    int layer = 0;
    const size_t dot = entry.name.find('.', kPrefix.size());
    if (matches_pattern("bert.encoder.layer.{i}", entry.name.substr(0, dot), layer)) {
      layers.insert(layer);
    }
  }
  const auto count = static_cast<int64_t>(layers.size());
  require(count > 0, "{}: contains no layer of an encoder (bert.encoder.layer.0...)", place);
  require(*layers.rbegin() == count - 1,
          "{}: the highest of {} encoder layers has the number {}; layers are missing", place,
          count, *layers.rbegin());
  return count;
}

}  // namespace

BertShape bert_shape_of(std::span<const TensorEntry> ours, const std::string& place) {
  BertShape shape;
  const Shape words = matrix_named(ours, "bert.embeddings.word_embeddings.weight", place).shape;
  shape.word_rows = words[0];
  shape.hidden_size = words[1];
  shape.max_position_embeddings =
      matrix_named(ours, "bert.embeddings.position_embeddings.weight", place).shape[0];
  shape.type_vocab_size =
      matrix_named(ours, "bert.embeddings.token_type_embeddings.weight", place).shape[0];
  shape.num_hidden_layers = count_layers(ours, place);
  shape.intermediate_size =
      matrix_named(ours, "bert.encoder.layer.0.intermediate.dense.weight", place).shape[0];
  for (const TensorEntry& entry : ours) {
    if (entry.name.starts_with("bert.encoder.FinalLayerNorm.")) shape.pre_layer_norm = true;
  }
  return shape;
}

void require_shape(const BertConfigFile& config, const std::string& config_place,
                   const BertShape& shape, const std::string& place) {
  std::vector<std::string> wrong;
  const auto compare = [&](std::string_view key, int64_t said, int64_t found) {
    if (said != found) wrong.push_back(fmt::format("{} {}, the tensors have {}", key, said, found));
  };
  compare(config_keys::kHiddenSize, config.hidden_size, shape.hidden_size);
  compare(config_keys::kLayers, config.num_hidden_layers, shape.num_hidden_layers);
  compare(config_keys::kIntermediateSize, config.intermediate_size, shape.intermediate_size);
  compare(config_keys::kPositions, config.max_position_embeddings, shape.max_position_embeddings);
  compare(config_keys::kSegments, config.type_vocab_size, shape.type_vocab_size);
  require(wrong.empty(), "{} does not match {}: it has {}", config_place, place,
          fmt::join(wrong, "; "));
}

}  // namespace onebit::formats
