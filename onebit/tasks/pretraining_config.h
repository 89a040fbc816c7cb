// A pre-training recipe: the engine's keys (engine/config.h) and the sections `model` and `data`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/data/pair_options.h"
#include "onebit/engine/config.h"
#include "onebit/model/config.h"
#include "onebit/model/memory_plan.h"

namespace onebit::tasks {

// The recipe's key "task".
inline constexpr const char* kPretrainingTask = "pretrain";

// Prefixes of what pre-training leaves of a checkpoint: heads of other tasks.
inline const std::vector<std::string> kNotForPretraining = {"qa_outputs.", "classifier."};

// The section `data`.
struct PretrainingData {
  data::PairOptions pairs;
  data::MaskOptions masks;
  int64_t evaluation_batch = 32;
  int64_t evaluation_samples = 2000;  // of the held-out store; 0: all
};

struct PretrainingConfig {
  engine::EngineConfig engine;
  model::BertConfig model;
  model::MemoryOptions memory;
  PretrainingData data;
};

// max_predictions_per_sequence defaults to the share masked_lm_probability of a full sequence,
// rounded up.
PretrainingData parse_pretraining_data(Keys section);

// Lists the keys of a recipe. `vocabulary_size` is that of the token store, if it is known; a recipe
// that names another is wrong, as is a sequence length beyond the model's positions.
PretrainingConfig read_pretraining_recipe(Keys& recipe, std::optional<int64_t> vocabulary_size);

// Error: everything that is wrong, another task's recipe included.
PretrainingConfig parse_pretraining_recipe(const Json& recipe, const std::string& place,
                                           std::optional<int64_t> vocabulary_size);

}  // namespace onebit::tasks
