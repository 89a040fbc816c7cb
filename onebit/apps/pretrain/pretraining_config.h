// A pre-training recipe: the engine's keys (engine/config.h) and the sections `model` and `data`.
#pragma once

#include <optional>
#include <string>

#include "onebit/data/batches/pair_options.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/math/model/batch.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/layer_drop.h"
#include "onebit/math/model/memory_plan.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/session_config.h"
#include "onebit/training/training/task_inputs.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::pretrain {

// The recipe's key "task".
inline constexpr const char* kPretrainingTask = "pretrain";
static_assert(training::kDefaultTask == kPretrainingTask);

// The section `data`.
struct PretrainingData {
  batches::PairOptions pairs;
  batches::MaskOptions masks;
  int64_t evaluation_batch = 32;
  int64_t evaluation_samples = 2000;  // of a held-out store. 0: all

  model::PreTrainingHeads heads() const {
    return pairs.next_sentence ? model::PreTrainingHeads::kBoth
                               : model::PreTrainingHeads::kMaskedWords;
  }
};

struct PretrainingConfig {
  engine::EngineConfig engine;
  training::SessionConfig session;
  model::EncoderConfig model;
  model::MemoryOptions memory;
  model::LayerDropOptions layer_drop;
  PretrainingData data;

  // The largest micro-batch of `samples`.
  model::BatchLimits limits(int64_t samples) const;

  // The layers that a pass leaves out.
  model::LayerDrop drop() const { return {layer_drop, model.layers}; }
};

// max_predictions_per_sequence defaults to masked_lm_probability times a full sequence, rounded up,
// next_sentence to whether the model may have that head.
PretrainingData parse_pretraining_data(Keys section, bool may_have_next_sentence = true);

// Lists the keys of a recipe. `vocabulary_size` is the size of the token store's vocabulary, if it
// is known. A recipe with another one is faulty, and so is a sequence length beyond the model's
// positions. `start` is the model that the run starts from or resumes with (model::read_config).
PretrainingConfig read_pretraining_recipe(Keys& recipe, std::optional<int64_t> vocabulary_size,
                                          const model::StartingModel* start = nullptr);

// Lists them where no store and no model are known.
void list_pretraining_keys(Keys& recipe);

// Error: lists all faults of the recipe. Another task's recipe is one.
PretrainingConfig parse_pretraining_recipe(const Recipe& recipe,
                                           std::optional<int64_t> vocabulary_size,
                                           const model::StartingModel* start = nullptr);

// Sizes of the encoder, and the number of parameters with these heads of pre-training.
Json model_sizes(const model::EncoderConfig& config, model::PreTrainingHeads heads);

// The part of `onebit inspect` about a pre-training recipe.
training::RecipeFacts inspect_pretraining_recipe(const Recipe& recipe);

}  // namespace onebit::pretrain
