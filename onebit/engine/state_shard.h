// One rank's share of the training state in a checkpoint (docs/checkpoint-format.md). A buffer that
// is equal on all ranks is cut into equal parts, one for each rank; a buffer of one rank (error
// feedback) is whole in that rank's file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/base/json.h"
#include "onebit/formats/safetensors.h"
#include "onebit/params/state.h"

namespace onebit::engine {

// Copies the buffers it is given, then writes them from any thread.
class StateShard : public params::StateWriter {
 public:
  StateShard(int rank, int world_size) : rank_(rank), world_size_(world_size) {}

  void scalar(const std::string& name, Json value) override { scalars_[name] = std::move(value); }
  void replicated(const std::string& name, ConstView flat) override;
  void own(const std::string& name, ConstView flat) override;

  // Equal on every rank.
  const Json& scalars() const { return scalars_; }
  // Writes "optimizer-00000-of-00002.safetensors" into `folder`.
  void write(const Path& folder) const;

 private:
  struct Buffer {
    std::string name;
    std::vector<float> values;
  };

  int rank_, world_size_;
  Json scalars_ = Json::object();
  std::vector<Buffer> buffers_;
};

// All shards of a checkpoint, mapped. Errors: a shard is missing or damaged.
class StateShards : public params::StateReader {
 public:
  // Verifies the checksums of the shards rank, rank + world_size, ...: the ranks together read each
  // shard once.
  StateShards(const Path& folder, int saved_world_size, Json scalars, int rank, int world_size);

  Json scalar(const std::string& name) const override;
  void replicated(const std::string& name, View flat) const override;
  int saved_world_size() const override { return static_cast<int>(shards_.size()); }
  int64_t own_elements(const std::string& name, int rank) const override;
  void own_of(const std::string& name, int rank, int64_t begin, std::span<float> to) const override;

 private:
  std::vector<std::unique_ptr<formats::SafetensorsFile>> shards_;
  Json scalars_;
};

}  // namespace onebit::engine
