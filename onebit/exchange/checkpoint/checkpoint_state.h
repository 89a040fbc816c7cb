// The file state.json of a checkpoint (docs/checkpoint-format.md): its own checksum, and those of
// the files that belong to it.
#pragma once

#include <string>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::checkpoint {

// Adds the CRC-32C of all other keys, as compact JSON in their order, under the key "crc32c".
void add_checksum(Json& state);

// The contents of the checkpoint `folder`. A file without a checksum is accepted: it was edited.
// Errors: no such file; not JSON; a step other than that of the folder's name or the saved
// counters; contents that do not match the checksum, with which a run would silently continue
// differently.
Json read_checkpoint_state(const Path& folder);

// The number of ranks that the contents state. Error, naming `place`: outside [1, 2^20].
int world_size_of(const Json& state, const std::string& place);

// In state.json: the checksums of the checkpoint's safetensors files, by their names in its folder.
inline constexpr const char* kFilesOfCheckpoint = "files";

// "model/model.safetensors".
std::string model_file_name();
// The checksum that a file states for itself; empty: none.
std::string stated_checksum(const Path& file);

// Error: the file `name` in `folder` is not the one that was written with this `state`, but another
// checkpoint's or another rank's. Accepted are a state without the checksum of this file, and a
// file that states none because another program has rewritten it.
void require_of_checkpoint(const Json& state, const Path& folder, const std::string& name);

}  // namespace onebit::checkpoint
