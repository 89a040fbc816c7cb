// Which ranks share the disk on which their run's folder lies: all of them on one machine or on a
// shared file system, those of a host where every host has a folder of its own under the same name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/comm/communicator.h"
#include "onebit/comm/nodes.h"

namespace onebit::engine {

struct Disks {
  comm::Nodes ranks;               // of each disk; numbered in the order of their first ranks
  std::vector<std::string> names;  // [count()], for messages: the host, with a number if need be
  // Of this start of the run, equal on every rank: later ones sort behind it as far as the clocks
  // of the hosts agree, and no two are equal.
  std::string start;

  int count() const { return ranks.count(); }
  int disk_of(int rank) const { return ranks.node_of(rank); }
  // The rank that writes what a disk holds once.
  int leader_of(int disk) const { return ranks.ranks_of(disk).front(); }
  bool leads(int rank) const { return leader_of(disk_of(rank)) == rank; }
  // The disks that keep the shard of a rank in `copies` copies, its own first: those behind it, in
  // a ring.
  std::vector<int> keepers_of(int rank, int64_t copies) const;
  // How many shards a disk then holds.
  int shards_on(int disk, int64_t copies) const;
  // The text with the disk that it is about in front, where there are several.
  std::string on(size_t disk, const std::string& text) const;
};

// Every rank writes a file of a random name (run_files::kDiskToken) into `folder` and looks for
// those of the others: who sees it shares the disk. Leaves nothing, not even the folder if it was
// not there. Collective. Error: the folder cannot be made or written to.
Disks find_disks(comm::Communicator& communicator, const Path& folder);

}  // namespace onebit::engine
