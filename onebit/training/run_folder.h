// The folder of a run: checkpoints, metrics.jsonl, TensorBoard events, the recipe as used.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/base/json.h"
#include "onebit/engine/checkpoint.h"
#include "onebit/training/model_card.h"
#include "onebit/training/model_folder.h"

namespace onebit::training {

// Errors: a file is there; a run is there and `resume` is false.
void check_run_folder(const Path& output, bool resume);
// Makes the folder and writes recipe.json, and recipe.resolved.json: the same with every default.
void write_run_recipes(const Path& output, const Json& recipe, const Json& resolved);

// Saves engine and values; `client_state` gets the card's recipe and the vocabulary's checksum
// added. The files are written beside the training.
void save_run(engine::Checkpoints& checkpoints, const engine::Engine& engine,
              const params::Table& table, const ModelDescription& description,
              const ModelCard& card, Json client_state);

// Restores values and engine; returns the lines to report, one for every key of `recipe` that
// changed. Collective. Errors: the model's shape or the vocabulary differs from `description`.
std::vector<std::string> restore_run(const engine::SavedCheckpoint& saved,
                                     const ModelDescription& description, const Json& recipe,
                                     params::Table& table, engine::Engine& engine, int world_size);

// The recipe that a run's folder or a checkpoint holds; empty where `path` is neither.
struct StoredRecipe {
  Json recipe;
  std::string place;
};
std::optional<StoredRecipe> stored_recipe(const Path& path);

// Calls `read`, which takes what it needs from a checkpoint's client state. Error: a member is
// missing.
void read_client_state(const engine::SavedCheckpoint& saved, const std::function<void()>& read);

// Error: the models differ in a size; `place` names where `found` is from.
void require_same_shape(const model::BertConfig& wanted, const model::BertConfig& found,
                        const std::string& place);

}  // namespace onebit::training
