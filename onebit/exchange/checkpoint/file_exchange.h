// Files that ranks send each other, for disks that only some ranks can access.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/file.h"

namespace onebit::checkpoint {

struct FileTransfer {
  int from = 0, to = 0;  // ranks, which differ
  Path source;           // the file that `from` reads. Other ranks ignore it
  Path target;           // the file that `to` writes and syncs, creating its folder
};

// Makes the transfers, the same list on every rank, in rounds of `chunk_bytes` between two ranks.
// Collective. Errors of this rank (a missing file, a full disk) are thrown after all rounds, so
// that no other rank waits for it. The part of a file that it has written is removed.
void exchange_files(comm::Communicator& communicator, std::span<const FileTransfer> transfers,
                    int64_t chunk_bytes = int64_t{4} << 20);

}  // namespace onebit::checkpoint
