#include "onebit/engine/state_shard.h"

#include "onebit/formats/safetensors_writer.h"
#include "onebit/tensor/tensor.h"

namespace onebit::engine {
namespace {

constexpr const char* kReplicated = "replicated.";
constexpr const char* kOwn = "own.";

Path shard_path(const Path& folder, int rank, int world_size) {
  return folder / fmt::format("optimizer-{:05}-of-{:05}.safetensors", rank, world_size);
}

int64_t part_begin(int64_t elements, int rank, int world_size) {
  return elements * rank / world_size;
}

}  // namespace

void StateShard::replicated(const std::string& name, ConstView flat) {
  const ConstView all = flat.reshaped({flat.elements()});
  const Tensor part = to_cpu_f32(all.rows(part_begin(flat.elements(), rank_, world_size_),
                                          part_begin(flat.elements(), rank_ + 1, world_size_)));
  const float* data = part.data<float>();
  buffers_.push_back({kReplicated + name, {data, data + part.shape().elements()}});
}

void StateShard::own(const std::string& name, ConstView flat) {
  const Tensor staged = to_cpu_f32(flat.reshaped({flat.elements()}));
  const float* data = staged.data<float>();
  buffers_.push_back({kOwn + name, {data, data + flat.elements()}});
}

void StateShard::write(const Path& folder) const {
  std::vector<formats::NamedTensor> tensors;
  for (const Buffer& buffer : buffers_) {
    const int64_t count = static_cast<int64_t>(buffer.values.size());
    tensors.push_back({buffer.name, ConstView::of(buffer.values.data(), {count})});
  }
  formats::write_safetensors(shard_path(folder, rank_, world_size_), std::move(tensors));
}

StateShards::StateShards(const Path& folder, int saved_world_size, Json scalars, int rank,
                         int world_size)
    : scalars_(std::move(scalars)) {
  for (int saved = 0; saved < saved_world_size; ++saved) {
    shards_.push_back(
        std::make_unique<formats::SafetensorsFile>(shard_path(folder, saved, saved_world_size)));
    if (saved % world_size == rank) shards_.back()->verify_checksum();
  }
}

Json StateShards::scalar(const std::string& name) const {
  const auto found = scalars_.find(name);
  return found == scalars_.end() ? Json() : *found;
}

void StateShards::replicated(const std::string& name, View flat) const {
  const int64_t elements = flat.elements();
  Tensor staged(Device{}, DType::kF32, {elements});
  const int world = saved_world_size();
  for (int rank = 0; rank < world; ++rank) {
    const auto& shard = *shards_[static_cast<size_t>(rank)];
    const size_t index = shard.index_of(kReplicated + name);
    const int64_t begin = part_begin(elements, rank, world);
    const int64_t count = part_begin(elements, rank + 1, world) - begin;
    require(
        shard.entries()[index].shape.elements() == count,
        "{}: the state \"{}\" has {} elements, this model needs {}: the checkpoint belongs to a "
        "model of another shape",
        shard.place(), name, shard.entries()[index].shape.elements(), count);
    shard.read_f32(index, {staged.data<float>() + begin, static_cast<size_t>(count)});
  }
  copy(flat.reshaped({elements}), staged.view());
}

int64_t StateShards::own_elements(const std::string& name, int rank) const {
  const auto& shard = *shards_[static_cast<size_t>(rank)];
  return shard.entries()[shard.index_of(kOwn + name)].shape.elements();
}

void StateShards::own_of(const std::string& name, int rank, int64_t begin,
                         std::span<float> to) const {
  const auto& shard = *shards_[static_cast<size_t>(rank)];
  shard.read_f32(shard.index_of(kOwn + name), begin, to);
}

}  // namespace onebit::engine
