// Collects the resources of this machine and facts about its inputs (cluster/host_facts.h).
#pragma once

#include "onebit/program/cluster/host_facts.h"

namespace onebit::cli {

// For each input and store: its kind, a checksum (of a store: of the checksums in the manifest, of
// a file up to 64 MiB: of its content, of others: of names and sizes) and a store's vocabulary, or
// the error. For the output: the free space and the newest checkpoint, or the error of creating a
// file there, which is tried.
cluster::HostFacts find_host_facts(const cluster::HostQuestion& question);

}  // namespace onebit::cli
