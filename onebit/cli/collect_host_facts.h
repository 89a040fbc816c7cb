// Finds out what this machine offers for training and has there (cluster/host_facts.h).
#pragma once

#include "onebit/cluster/host_facts.h"

namespace onebit::cli {

// Of each input and store its kind, a checksum (stores: of the checksums in the manifest; files up
// to 64 MiB: of the content; others: of names and sizes), a store's vocabulary; or the error. Of
// the output what is free there and the newest checkpoint, or why no file can be made there, which
// is tried.
cluster::HostFacts find_host_facts(const cluster::HostQuestion& question);

}  // namespace onebit::cli
