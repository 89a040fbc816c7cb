// Keeps the batch of a run on another number of ranks.
#pragma once

#include <optional>
#include <string>

#include "onebit/cluster/host_list.h"
#include "onebit/cluster/shell_words.h"
#include "onebit/engine/batch_sizes.h"

namespace onebit::cluster {

struct BatchFit {
  int ranks = 0;
  engine::BatchSizes sizes;  // with these ranks
};

// `most` ranks, or as many as there are samples. The micro-batch never grows (memory was planned
// for the given one), accumulation makes up for the rest; what then does not divide is dealt
// unevenly.
BatchFit fit_batch(const engine::BatchSizes& planned, int most);

// The recipe's keys for it: `--set train_batch_size=...` and so on.
Words overrides_of(const engine::BatchSizes& sizes);

// Takes ranks away, the last first, until `ranks` are left.
void keep_ranks(Hosts& hosts, int ranks);
// The same where each host of `planned` keeps its part of a checkpoint and a copy of that of the
// host before it, in a ring: a host loses its last rank only if there is no other way, and rather
// one between two that are there, so that nothing is lost together with those that are not.
void keep_ranks_and_copies(Hosts& hosts, int ranks, const Hosts& planned);

}  // namespace onebit::cluster
