// Inspects a path: a store, a recipe, a model, a checkpoint or a run.
#pragma once

#include <string>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::inspect {

// Returns an object with the keys `kind` and `path`, and the keys of the kind (docs/inspect.md):
// numbers as numbers, sizes in bytes, absent values as null. `verify` also compares files with
// their checksums. `statistics` reads all of a store. Errors: no such path, none of these kinds, or
// statistics of anything other than a store.
struct InspectOptions {
  bool verify = false, statistics = false;
};
Json inspect(const Path& path, const InspectOptions& options);

// The result of inspect() as tables for a terminal. Sizes and counts have units.
std::string inspection_text(const Json& inspected);

}  // namespace onebit::inspect
