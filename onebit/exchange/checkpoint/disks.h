// Which ranks share the disk with their run's folder: all of them on one machine or on a shared
// file system, or the ranks of one host if every host has its own folder of the same name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/comm/nodes.h"
#include "onebit/ground/base/file.h"

namespace onebit::checkpoint {

struct Disks {
  comm::Nodes ranks;               // the ranks of each disk, numbered in the order of first ranks
  std::vector<std::string> names;  // [count()], for messages: the host, with a number if necessary
  // Identifies this start of the run, equal on every rank: later starts sort after it as far as the
  // clocks of the hosts agree, and no two are equal.
  std::string start;

  int count() const { return ranks.count(); }
  int disk_of(int rank) const { return ranks.node_of(rank); }
  // The rank that writes files of which a disk holds one copy.
  int leader_of(int disk) const { return ranks.ranks_of(disk).front(); }
  bool leads(int rank) const { return leader_of(disk_of(rank)) == rank; }
  // The disks that keep the shard of a rank in `copies` copies: its own first, then the following
  // ones in a ring.
  std::vector<int> keepers_of(int rank, int64_t copies) const;
  // The number of shards that a disk then holds.
  int shards_on(int disk, int64_t copies) const;
  // The text, prefixed with the disk that it is about if there are several.
  std::string on(size_t disk, const std::string& text) const;
};

// Every rank writes a file of a random name (run_files::kDiskToken) into `folder` and looks for the
// files of the others: ranks that find it share the disk. Leaves nothing behind, not even the
// folder if it did not exist. Collective. Error: the folder cannot be created or written to.
Disks find_disks(comm::Communicator& communicator, const Path& folder);

}  // namespace onebit::checkpoint
