// One rank's share of the training state in a checkpoint (docs/checkpoint-format.md). A buffer that
// is equal on all ranks is cut into equal parts, one per rank. A buffer of a single rank (error
// feedback) is complete in that rank's file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "onebit/data/formats/tensor_source.h"
#include "onebit/exchange/checkpoint/shard_service.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/tensor/state.h"

namespace onebit::checkpoint {

// "optimizer-00000-of-00002.safetensors".
std::string shard_name(int rank, int world_size);

// Copies the buffers it is given, then writes them from any thread.
class StateShard : public StateWriter {
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

// All shards of a checkpoint: mapped if they are on this rank's disk, otherwise read through the
// ranks that have them. Errors: a shard is missing or damaged.
class StateShards : public StateReader {
 public:
  // `holders` are the ranks that have the shards, -1 for shards in `folder`. All ranks together
  // have verified them. Without a service all are in `folder`.
  StateShards(Path folder, std::vector<int> holders, Json scalars, int rank,
              std::unique_ptr<ShardService> service);

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
