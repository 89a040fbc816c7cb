// What a host offers for training and has there, as `onebit doctor --json` prints it.
#pragma once

#include <string>
#include <vector>

#include "onebit/base/json.h"

namespace onebit::cli {

// `inputs` are paths: token stores, recipes, models, other files. Of each its kind, a checksum
// (stores: of the checksums in the manifest; files up to 64 MiB: of the content; others: of names
// and sizes), a store's vocabulary; or the key "error". Keys: docs/doctor.md.
Json host_facts(const std::vector<std::string>& inputs);

}  // namespace onebit::cli
