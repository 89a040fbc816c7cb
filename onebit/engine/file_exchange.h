// Sends files from rank to rank, for disks that only some ranks see.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/comm/communicator.h"

namespace onebit::engine {

struct FileTransfer {
  int from = 0, to = 0;  // ranks, which differ
  Path source;           // where `from` reads it; other ranks ignore it
  Path target;           // where `to` writes it, synced; its folder is made
};

// Makes the transfers, the same list on every rank, in rounds of `chunk_bytes` between two ranks.
// Collective. Errors of this rank (a file that is not there, a full disk) are thrown once all
// rounds are over, so that no other rank waits for it; what it has written of a file is removed.
void exchange_files(comm::Communicator& communicator, std::span<const FileTransfer> transfers,
                    int64_t chunk_bytes = int64_t{4} << 20);

}  // namespace onebit::engine
