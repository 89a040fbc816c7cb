// The folder of a run: checkpoints, metrics.jsonl, TensorBoard events, the recipe as used.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/training/training/model_card.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::training {

// Errors: `output` is a file or contains other files; it contains a run and `resume` is false.
void check_run_folder(const Path& output, bool resume);
// Creates the folder; writes recipe.json and, with all defaults, recipe.resolved.json.
void write_run_recipes(const Path& output, const Json& recipe, const Json& resolved);

// Saves engine and values; adds the card's recipe and the vocabulary's checksum to `client_state`.
// The files are written while training continues.
void save_run(checkpoint::Checkpoints& checkpoints, const engine::Engine& engine,
              const ParameterTable& table, const ModelDescription& description,
              const ModelCard& card, Json client_state);

// Restores values and engine; returns the lines to report, one for every key of `recipe` that
// changed. Collective. Errors: the model's shape or the vocabulary differs from `description`.
std::vector<std::string> restore_run(const checkpoint::SavedCheckpoint& saved,
                                     const ModelDescription& description, const Json& recipe,
                                     ParameterTable& table, engine::Engine& engine, int world_size);

// The recipe stored in a run's folder or a checkpoint; empty if `path` is neither.
std::optional<Recipe> stored_recipe(const Path& path);

// Calls `read`, which accesses the members of a checkpoint's client state. Error: one is missing.
void read_client_state(const checkpoint::SavedCheckpoint& saved, const std::function<void()>& read);

// Error: the models differ in a size; `place` names where `found` is from.
void require_same_shape(const model::BertConfig& wanted, const model::BertConfig& found,
                        const std::string& place);

}  // namespace onebit::training
