#include "onebit/data/formats/encoder_shape.h"

#include <algorithm>
#include <set>
#include <vector>

#include "onebit/data/formats/name_tables.h"
#include "onebit/data/formats/plain_names.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

constexpr std::string_view kWords = "bert.embeddings.word_embeddings.weight";
constexpr std::string_view kPositions = "bert.embeddings.position_embeddings.weight";
constexpr std::string_view kSegments = "bert.embeddings.token_type_embeddings.weight";
constexpr std::string_view kScoreBuckets = "bert.encoder.relative_attention_bias.weight";
constexpr std::string_view kIntermediate = "bert.encoder.layer.{i}.intermediate.dense.weight";
constexpr std::string_view kFirstIntermediate = "bert.encoder.layer.0.intermediate.dense.weight";

const TensorEntry& matrix_named(std::span<const TensorEntry> ours, std::string_view name,
                                const std::string& place) {
  for (const TensorEntry& entry : ours) {
    if (entry.name != name) continue;
    require(entry.shape.rank() == 2 && entry.shape[0] > 0 && entry.shape[1] > 0,
            "{}: tensor {} has shape {}; a matrix was expected", place, quote(name),
            to_string(entry.shape));
    return entry;
  }
  fail("{}: tensor {} is missing; every encoder has it; there are {}", place, quote(name),
       some_names(ours));
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

int64_t word_rows_of(std::span<const TensorEntry> ours, const std::string& place) {
  return matrix_named(ours, kWords, place).shape[0];
}

EncoderShape encoder_shape_of(std::span<const TensorEntry> ours, const std::string& place) {
  EncoderShape shape;
  const Shape words = matrix_named(ours, kWords, place).shape;
  shape.word_rows = words[0];
  shape.hidden_size = words[1];
  shape.max_position_embeddings = matrix_named(ours, kPositions, place).shape[0];
  shape.type_vocab_size = matrix_named(ours, kSegments, place).shape[0];
  shape.num_hidden_layers = count_layers(ours, place);
  shape.intermediate_size = matrix_named(ours, kFirstIntermediate, place).shape[0];
  for (const TensorEntry& entry : ours) {
    if (entry.name.starts_with("bert.encoder.FinalLayerNorm.")) shape.pre_layer_norm = true;
  }
  return shape;
}

void require_sizes_of_tensors(const EncoderConfigFile& config, const std::string& config_place,
                              std::span<const TensorEntry> ours, const std::string& place) {
  const Family& family = config.family();
  std::vector<std::string> wrong;
  int64_t layers = 0;
  const auto compare = [&](std::string_view key, int64_t said, int64_t found) {
    if (said != found) wrong.push_back(fmt::format("{} {}, the tensors have {}", key, said, found));
  };
  const int64_t width = config.choices.embedding_size;
  const int64_t factors = config.choices.gated ? 2 : 1;
  for (const TensorEntry& entry : ours) {
    if (entry.shape.rank() != 2) continue;
    if (entry.name == kWords) {
      compare(config_keys::kVocabSize, config.vocab_size, entry.shape[0]);
      compare(width > 0 ? family.keys.embedding_size : family.keys.hidden_size,
              width > 0 ? width : config.hidden_size, entry.shape[1]);
    } else if (entry.name == kPositions && config.choices.position_table) {
      compare(family.keys.positions, config.max_position_embeddings, entry.shape[0]);
    } else if (entry.name == kSegments && !family.keys.segments.empty()) {
      compare(family.keys.segments, config.type_vocab_size, entry.shape[0]);
    } else if (entry.name == kScoreBuckets && config.choices.score_buckets > 0) {
      compare(family.keys.score_buckets, config.choices.score_buckets, entry.shape[0]);
    } else if (entry.name == kFirstIntermediate) {
      compare(family.keys.intermediate_size, factors * config.intermediate_size, entry.shape[0]);
    }
    if (int layer = 0; matches_pattern(kIntermediate, entry.name, layer)) {
      layers = std::max(layers, int64_t{layer} + 1);
    }
  }
  if (layers > 0) compare(family.keys.layers, config.num_hidden_layers, layers);
  require(wrong.empty(), "{} does not match {}: it has {}", config_place, place,
          fmt::join(wrong, "; "));
}

void require_shape(const EncoderConfigFile& config, const std::string& config_place,
                   const EncoderShape& shape, const std::string& place) {
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
