// The part of `onebit inspect` about token stores and sample stores.
#pragma once

#include "onebit/tasks/inspect.h"

namespace onebit::tasks {

// Whether `path` contains a store, intact or damaged.
bool looks_like_store(const Path& path);

// For a store of either kind. Errors: it is damaged, or, with `verify`, differs from its checksums.
Json inspect_store(const Path& path, const InspectOptions& options);

}  // namespace onebit::tasks
