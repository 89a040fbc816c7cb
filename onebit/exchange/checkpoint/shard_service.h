// Shards of a checkpoint on disks of other ranks: while all ranks restore their state, each reads
// the parts that it requests from a rank that has them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/disks.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/file.h"

namespace onebit::checkpoint {

// Works in rounds: all ranks send each other their next requests and receive the data. A separate
// thread runs the rounds, since the restored contents determine the next requests.
class ShardService {
 public:
  // `path_of` returns the file of a shard on this rank's disk.
  ShardService(std::unique_ptr<comm::Communicator> communicator,
               std::function<Path(int shard)> path_of);

  // Runs `work` while fetch() is available, here and for the other ranks, and returns when all
  // ranks have finished theirs. Collective. Errors: what `work` throws, or another rank cannot read
  // a shard.
  void serve_while(const std::function<void()>& work);

  // Reads bytes of the file of `shard`, from `offset` on, through `holder`. Inside serve_while().
  void fetch(int holder, int shard, uint64_t offset, std::span<std::byte> to);
  // The length of that file.
  uint64_t file_bytes(int holder, int shard);
  // Bytes that other ranks have sent to this one.
  int64_t fetched_bytes() const { return fetched_bytes_; }

 private:
  struct Request {
    int64_t holder = -1;  // -1: no request in this round
    int64_t shard = 0;
    int64_t offset = 0;
    int64_t bytes = 0;  // 0: requests the length of the file, as eight bytes
    int64_t done = 0;   // no more requests will follow
  };

  void rounds();
  Request next_request();
  void serve(std::span<const Request> requests, const Request& own);
  void append(const Request& request, std::vector<std::byte>& to);
  void get(Request request, std::span<std::byte> to);

  std::unique_ptr<comm::Communicator> communicator_;
  std::function<Path(int)> path_of_;
  std::map<int64_t, MappedFile> files_;  // used by the thread only
  int64_t fetched_bytes_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Request> request_;  // until it is fulfilled
  std::span<std::byte> to_;
  bool done_ = false, stopping_ = false;
  std::exception_ptr error_;
};

// Restores shards of a checkpoint on disks that should have them and have lost or damaged them.
struct ShardRepair {
  int shard = 0;
  int from = 0, to = 0;  // disks, which differ
};

// Makes the repairs, the same list on every rank, in the folder `tag` of a checkpoint of
// `world_size` shards, which every disk has. Each shard is written to a temporary file, synced,
// verified and renamed. Returns in the order of the repairs why those to a disk failed (it is
// full). Empty: success. A failure does not prevent the run, so it is no error. Collective.
std::vector<std::string> repair_shards(comm::Communicator& communicator,
                                       const CheckpointFolder& folder, const Disks& disks,
                                       const std::string& tag, int world_size,
                                       std::span<const ShardRepair> repairs);

}  // namespace onebit::checkpoint
