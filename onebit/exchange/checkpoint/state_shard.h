// One rank's share of the training state in a checkpoint (docs/checkpoint-format.md). A buffer that
// is equal on all ranks is cut into equal parts, one per rank. A buffer of a single rank (error
// feedback) is complete in that rank's file.
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

#include "onebit/data/formats/tensor_source.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"

namespace onebit::checkpoint {

// "optimizer-00000-of-00002.safetensors".
std::string shard_name(int rank, int world_size);

// Copies the buffers it is given, then writes them from any thread.
class StateShard : public optim::StateWriter {
 public:
  StateShard(int rank, int world_size) : rank_(rank), world_size_(world_size) {}

  void scalar(const std::string& name, Json value) override { scalars_[name] = std::move(value); }
  void replicated(const std::string& name, ConstView flat) override;
  void own(const std::string& name, ConstView flat) override;

  // The size of the copies.
  int64_t size_bytes() const;
  // Equal on every rank.
  const Json& scalars() const { return scalars_; }
  // Writes the file of this name into `folder`.
  void write(const Path& folder) const;

 private:
  struct Buffer {
    std::string name;
    std::vector<float> values;
  };

  void add(std::string name, ConstView part);

  int rank_, world_size_;
  Json scalars_ = Json::object();
  std::vector<Buffer> buffers_;
};

// Shards of a checkpoint on disks of other ranks: while all ranks restore their state, each reads
// the parts that it requests from a rank that has them. The ranks work in rounds: all send each
// other their next requests and receive the data. A separate thread runs the rounds, since the
// restored contents determine the next requests.
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

// All shards of a checkpoint: mapped if they are on this rank's disk, otherwise read through the
// ranks that have them. Errors: a shard is missing or damaged.
class StateShards : public optim::StateReader {
 public:
  // `holders` are the ranks that have the shards, -1 for shards in `folder`. All ranks together
  // have verified them. `serving`, null if every rank has all shards in `folder`, is for shards of
  // other ranks.
  StateShards(Path folder, std::vector<int> holders, Json scalars, int rank,
              std::unique_ptr<comm::Communicator> serving);

  // Calls `work`, during which shards on disks of other ranks can be read as well. Collective.
  void serve_while(const std::function<void()>& work) const;
  // Bytes received from other ranks so far.
  int64_t fetched_bytes() const { return service_ == nullptr ? 0 : service_->fetched_bytes(); }

  Json scalar(const std::string& name) const override;
  void replicated(const std::string& name, View flat) const override;
  int saved_world_size() const override { return static_cast<int>(holders_.size()); }
  int64_t own_elements(const std::string& name, int rank) const override;
  void own_of(const std::string& name, int rank, int64_t begin, std::span<float> to) const override;

 private:
  const formats::TensorSource& shard(int rank) const;

  Path folder_;
  std::vector<int> holders_;
  Json scalars_;
  int rank_ = 0;  // of the reading rank
  std::unique_ptr<ShardService> service_;
  mutable std::vector<std::unique_ptr<formats::TensorSource>> shards_;  // opened when first read
};

}  // namespace onebit::checkpoint
