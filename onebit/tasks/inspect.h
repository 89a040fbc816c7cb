// What a path is: a token store, a recipe, a model, a checkpoint or a run.
#pragma once

#include "onebit/base/file.h"
#include "onebit/base/json.h"

namespace onebit::tasks {

// An object with the keys `kind` and `path`, then what the kind has (docs/inspect.md lists them):
// numbers as numbers, sizes in bytes, absent things as null. Errors: nothing there, or none of
// these; `verify` also reads a token store against its checksums.
Json inspect(const Path& path, bool verify);

}  // namespace onebit::tasks
