// Shards of a checkpoint that lie on disks of other ranks: while all ranks restore their state,
// each reads what it asks for from a rank that has it.
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
#include <vector>

#include "onebit/base/file.h"
#include "onebit/comm/communicator.h"

namespace onebit::engine {

// In rounds: all ranks send each other what they want next, and get it. A thread beside the one
// that restores makes them, since what is restored decides what is wanted.
class ShardService {
 public:
  // `path_of` gives the file of a shard that lies on this rank's disk.
  ShardService(std::unique_ptr<comm::Communicator> communicator,
               std::function<Path(int shard)> path_of);

  // Runs `work` while fetch() works, here and for the other ranks; returns when all have ended
  // theirs. Collective. Errors: that of `work`; a shard that cannot be read by another rank.
  void serve_while(const std::function<void()>& work);

  // Bytes of the file of `shard`, from `offset` on, that `holder` reads. Inside serve_while().
  void fetch(int holder, int shard, uint64_t offset, std::span<std::byte> to);
  // The length of that file.
  uint64_t file_bytes(int holder, int shard);
  // What other ranks have sent to this one.
  int64_t fetched_bytes() const { return fetched_bytes_; }

 private:
  struct Request {
    int64_t holder = -1;  // -1: none this time
    int64_t shard = 0;
    int64_t offset = 0;
    int64_t bytes = 0;  // 0: the length of the file, as eight bytes
    int64_t done = 0;   // nothing will follow
  };

  void rounds();
  Request next_request();
  void serve(std::span<const Request> requests, const Request& own);
  void append(const Request& request, std::vector<std::byte>& to);
  void get(Request request, std::span<std::byte> to);

  std::unique_ptr<comm::Communicator> communicator_;
  std::function<Path(int)> path_of_;
  std::map<int64_t, MappedFile> files_;  // of the thread
  int64_t fetched_bytes_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Request> request_;  // until it is fulfilled
  std::span<std::byte> to_;
  bool done_ = false, stopping_ = false;
  std::exception_ptr error_;
};

}  // namespace onebit::engine
