// The folder of a run: checkpoints, metrics.jsonl, TensorBoard events, the recipe as used.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint.h"
#include "onebit/exchange/engine/engine.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/training/training/model_folder.h"
#include "onebit/training/training/session_config.h"

namespace onebit::training {

// Errors: `output` is a file or contains other files, or it contains a run and `resume` is false.
void check_run_folder(const Path& output, bool resume);
// Creates the folder, and writes recipe.json and, with all defaults, recipe.resolved.json.
void write_run_recipes(const Path& output, const Json& recipe, const Json& resolved);

// Copies the values. Returns what writes the copy and its card into a model folder.
std::function<void(const Path&)> model_writer(const ParameterTable& table,
                                              const ModelDescription& description,
                                              const ModelCard& card);
// In a checkpoint's client state.
inline constexpr const char* kVocabularyChecksum = "vocabulary_checksum";
// Error: the model's shape or the vocabulary differs from `description`.
void require_same_model(const checkpoint::SavedCheckpoint& saved,
                        const ModelDescription& description);
// The lines to report about a resume, one for every key of `recipe` that changed.
std::vector<std::string> describe_resume(const checkpoint::SavedCheckpoint& saved,
                                         const Json& recipe, const engine::EngineConfig& config,
                                         int world_size);
// How checkpoints are distributed over several disks, or why the `copies` requested are not made.
// Empty: on one disk, and no copies are requested.
std::string describe_disks(const checkpoint::Disks& disks, int64_t copies);

// The recipe stored in a run's folder or a checkpoint. Empty if `path` is neither.
std::optional<Recipe> stored_recipe(const Path& path);

// Calls `read`, which accesses the members of a checkpoint's client state. Error: one is missing.
void read_client_state(const checkpoint::SavedCheckpoint& saved, const std::function<void()>& read);

// Error: the models differ in a size. `place` names where `found` is from.
void require_same_shape(const model::EncoderConfig& wanted, const model::EncoderConfig& found,
                        const std::string& place);

// The disk space that the checkpoints of a run will take, computed before the first step: a run
// must not fail hours later because the first checkpoint of its compressed phase does not fit.
struct CheckpointSpace {
  int64_t first_bytes = 0;       // on disk, of a checkpoint of the phase in which the run begins
  int64_t compressed_bytes = 0;  // of a checkpoint of the compressed phase. 0: no such phase
  int64_t to_come = 0;           // number of checkpoints still to be written
  int64_t keep_last = 1;

  int64_t largest_bytes() const { return std::max(first_bytes, compressed_bytes); }
};

// On one disk, which stores the model and the fraction `share` of the shards (1: all of them).
CheckpointSpace space_of_checkpoints(engine::Engine& engine, const SessionConfig& session,
                                     double share = 1);

// Bytes that a rank copies to write its part while training continues: its shard of the
// `saved_bytes` of all ranks, and the values if it also writes the model.
int64_t checkpoint_copy_bytes(const ParameterTable& table, int64_t saved_bytes, int world_size,
                              bool writes_model);
// In the current phase or, if larger, in one that the run reaches.
int64_t checkpoint_copy_bytes(engine::Engine& engine, int world_size, bool writes_model);

// "4.03 GB, 25.6 GB after the freeze; ..."
std::string describe(const CheckpointSpace& space);

// Returns a warning if the disk fills before old checkpoints are removed, else an empty string.
// `kept` checkpoints exist already. Error: `free_bytes` is less than the largest checkpoint takes.
std::string check_space(const CheckpointSpace& space, int64_t kept, int64_t free_bytes,
                        const std::string& place);

// Free bytes of a folder's file system. Empty if it does not report them.
std::optional<int64_t> free_bytes_at(const std::filesystem::path& folder);

}  // namespace onebit::training
