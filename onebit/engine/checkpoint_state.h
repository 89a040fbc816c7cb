// The file state.json of a checkpoint (docs/checkpoint-format.md): the checksum in it, and those of
// the files that belong to it.
#pragma once

#include <string>

#include "onebit/base/file.h"
#include "onebit/base/json_fwd.h"

namespace onebit::engine {

// Adds the CRC-32C of all other keys, as compact JSON in their order, under the key "crc32c".
void add_checksum(Json& state);

// The contents of the checkpoint `folder`. A file without a checksum is believed: an older one, or
// one that was changed by hand. Errors: no such file; no JSON; another step than the folder's name
// or the saved counters say; its contents are not those of the checksum, so that a run would
// continue otherwise without a word.
Json read_checkpoint_state(const Path& folder);

// In state.json: the checksums of the checkpoint's safetensors files, by their names in its folder.
inline constexpr const char* kFilesOfCheckpoint = "files";

// "model/model.safetensors".
std::string model_file_name();
// The checksum that the file states of itself; empty: none.
std::string stated_checksum(const Path& file);

// Error: the file `name` in `folder` is not the one that was written with this `state`, but another
// checkpoint's or another rank's. A state without the checksum of this file, which an older onebit
// wrote, is believed, and so is a file that states none: another program has written it anew.
void require_of_checkpoint(const Json& state, const Path& folder, const std::string& name);

}  // namespace onebit::engine
