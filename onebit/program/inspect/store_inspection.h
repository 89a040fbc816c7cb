// The part of `onebit inspect` about token stores and sample stores.
#pragma once

#include "onebit/program/inspect/inspect.h"

namespace onebit::inspect {

// Whether `path` contains a store, intact or damaged.
bool looks_like_store(const Path& path);

// Inspects a store of either kind. Error: it is damaged or, with `verify`, not as its checksums.
Json inspect_store(const Path& path, const InspectOptions& options);

}  // namespace onebit::inspect
