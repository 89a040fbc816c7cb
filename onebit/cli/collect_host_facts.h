// Finds out what this machine offers for training and has there (cluster/host_facts.h).
#pragma once

#include <string>
#include <vector>

#include "onebit/cluster/host_facts.h"

namespace onebit::cli {

// `inputs` are paths: token stores, recipes, models, other files. Of each its kind, a checksum
// (stores: of the checksums in the manifest; files up to 64 MiB: of the content; others: of names
// and sizes), a store's vocabulary; or the error.
cluster::HostFacts find_host_facts(const std::vector<std::string>& inputs);

}  // namespace onebit::cli
