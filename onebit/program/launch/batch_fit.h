// Keeps the batch size of a run on a different number of ranks.
#pragma once

#include <optional>
#include <string>

#include "onebit/exchange/engine/batch_sizes.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/host_list.h"

namespace onebit::launch {

struct BatchFit {
  int ranks = 0;
  engine::BatchSizes sizes;  // for these ranks
};

// Fits the planned batch to `most` ranks, or to as many as there are samples if these are fewer.
// The micro-batch never grows, since memory was planned for the given one. Accumulation grows
// instead, and a batch that does not divide is distributed unevenly.
BatchFit fit_batch(const engine::BatchSizes& planned, int most);

// The options that set these sizes: `--set train_batch_size=...` and so on.
cluster::Words overrides_of(const engine::BatchSizes& sizes);

// Removes ranks, the last first, until `ranks` are left.
void keep_ranks(cluster::Hosts& hosts, int ranks);
// As keep_ranks(), for runs in which each host of `planned` keeps its part of a checkpoint and a
// copy of the previous host's part (a ring). A host loses its last rank only if every host has one
// rank. Then a host is preferred whose two neighbours are both present, so that no part is lost
// together with the parts of absent hosts.
void keep_ranks_and_copies(cluster::Hosts& hosts, int ranks, const cluster::Hosts& planned);

}  // namespace onebit::launch
