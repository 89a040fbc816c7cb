// The file state.json of a checkpoint (docs/checkpoint-format.md), and the checksum in it.
#pragma once

#include "onebit/base/file.h"
#include "onebit/base/json.h"

namespace onebit::engine {

// Adds the CRC-32C of all other keys, as compact JSON in their order, under the key "crc32c".
void add_checksum(Json& state);

// The contents of the checkpoint `folder`. A file without a checksum is believed: an older one, or
// one that was changed by hand. Errors: no such file; no JSON; its contents are not those of the
// checksum, so that a run would continue otherwise without a word.
Json read_checkpoint_state(const Path& folder);

}  // namespace onebit::engine
