// Makes model folders of the kinds from which a run can start.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "onebit/data/formats/families.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/math/model/head_names.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::finetune {

// A small shape that differs from all presets, with non-default arithmetic.
inline model::EncoderConfig odd_shape(int64_t vocab_size) {
  return {.vocab_size = vocab_size,
          .hidden_size = 24,
          .layers = 3,
          .heads = 3,
          .intermediate_size = 40,
          .max_positions = 40,
          .initializer_range = 0.1,
          .layer_norm_eps = 1e-7,
          .choices = {.activation = ChosenActivation::kGeluTanh,
                      .head_activation = ChosenActivation::kGeluTanh}};
}

// BertForPreTraining with values drawn from a seed.
inline void write_model(const Path& folder, const model::EncoderConfig& config,
                        std::shared_ptr<const text::Vocabulary> vocabulary,
                        text::Casing casing = text::Casing::kUncased) {
  ParameterTable table;
  const model::PreTrainingModel model(config, table, model::PreTrainingHeads::kBoth);
  table.allocate(Device{}, DType::kF32);
  table.initialize(1);
  std::filesystem::create_directories(folder);
  training::ValueSnapshot(table).write(folder, {.config = config,
                                                .architecture = "BertForPreTraining",
                                                .vocabulary = std::move(vocabulary),
                                                .casing = casing});
}

// A small model with masked words of a family, with values drawn from a seed. Returns its shape.
inline model::EncoderConfig write_model_of(const formats::Family& family, const Path& folder,
                                           std::shared_ptr<const text::Vocabulary> vocabulary) {
  const bool is_bert = family.is_bert();
  model::EncoderConfig config = {.family = std::string(is_bert ? "bert" : family.model_type),
                                 .vocab_size = vocabulary->size(),
                                 .hidden_size = 32,
                                 .layers = 4,
                                 .heads = 2,
                                 .intermediate_size = 64,
                                 .max_positions = 128,
                                 .segments = family.segments,
                                 .hidden_dropout = family.hidden_dropout,
                                 .attention_dropout = family.attention_dropout,
                                 .initializer_range = 0.1,
                                 .layer_norm_eps = family.epsilon,
                                 .choices = family.choices};
  if (config.choices.window > 0) config.choices.window = 4;
  ParameterTable table;
  const model::PreTrainingModel model(config, table, model::PreTrainingHeads::kMaskedWords);
  table.allocate(Device{}, DType::kF32);
  table.initialize(1);
  std::filesystem::create_directories(folder);
  training::ValueSnapshot(table).write(folder, {.config = config,
                                                .architecture = model::kMaskedWordArchitecture,
                                                .vocabulary = std::move(vocabulary)});
  return config;
}

// Removes the tensors whose names start with one of `prefixes` from a model folder.
inline void drop_tensors(const Path& folder, const std::vector<std::string>& prefixes) {
  const Path path = folder / "model.safetensors", rest = folder / "rest.safetensors";
  {
    const formats::SafetensorsFile file(path);
    std::vector<std::vector<float>> values(file.entries().size());
    std::vector<formats::NamedTensor> kept;
    for (size_t i = 0; i < values.size(); ++i) {
      const formats::TensorEntry& entry = file.entries()[i];
      const bool dropped =
          std::any_of(prefixes.begin(), prefixes.end(),
                      [&](const std::string& prefix) { return entry.name.starts_with(prefix); });
      if (dropped) continue;
      values[i].resize(static_cast<size_t>(entry.shape.elements()));
      file.read_f32(i, values[i]);
      kept.emplace_back(entry.name, values[i].data(), entry.shape);
    }
    formats::write_safetensors(rest, std::move(kept));
  }
  std::filesystem::rename(rest, path);
}

// The values of one tensor of a model folder.
inline std::vector<float> values_of(const Path& folder, const std::string& name) {
  const formats::SafetensorsFile file(folder / "model.safetensors");
  const size_t index = file.index_of(name);
  std::vector<float> values(static_cast<size_t>(file.entries()[index].shape.elements()));
  file.read_f32(index, values);
  return values;
}

}  // namespace onebit::finetune
