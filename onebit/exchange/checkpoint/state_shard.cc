#include "onebit/exchange/checkpoint/state_shard.h"

#include <algorithm>

#include "onebit/data/formats/safetensors.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::checkpoint {
namespace {

constexpr const char* kReplicated = "replicated.";
constexpr const char* kOwn = "own.";

int64_t part_begin(int64_t elements, int rank, int world_size) {
  return elements * rank / world_size;
}

// A shard that another rank reads for this one.
class RemoteShard : public formats::TensorSource {
 public:
  RemoteShard(ShardService& service, int holder, int shard, const std::string& name)
      : service_(service), holder_(holder), shard_(shard) {
    const std::string place = fmt::format("{} on the disk of rank {}", name, holder);
    const uint64_t file_bytes = service.file_bytes(holder, shard);
    uint64_t header_bytes = 0;
    require(file_bytes >= sizeof header_bytes, "{}: the file is truncated", place);
    service.fetch(holder, shard, 0, std::as_writable_bytes(std::span(&header_bytes, 1)));
    require(header_bytes <=
                std::min(file_bytes - sizeof header_bytes, formats::kMaxSafetensorsHeaderBytes),
            "{}: offset 0: damaged: it claims a header of {} bytes", place, header_bytes);
    std::vector<std::byte> front(sizeof header_bytes + header_bytes);
    service.fetch(holder, shard, 0, front);
    formats::SafetensorsHeader header = formats::parse_safetensors_header(front, file_bytes, place);
    spans_ = std::move(header.spans);
    set_entries(place, std::move(header.entries));
  }

 private:
  std::span<const std::byte> readable_bytes(size_t index,
                                            std::vector<std::byte>& scratch) const override {
    const formats::SafetensorsSpan span = spans_[index];
    return readable_part(index, {.begin = 0, .size_bytes = span.end - span.begin}, scratch);
  }
  std::span<const std::byte> readable_part(size_t index, formats::ByteRange range,
                                           std::vector<std::byte>& scratch) const override {
    scratch.resize(range.size_bytes);
    service_.fetch(holder_, shard_, spans_[index].begin + range.begin, scratch);
    return scratch;
  }

  ShardService& service_;
  int holder_, shard_;
  std::vector<formats::SafetensorsSpan> spans_;
};

}  // namespace

std::string shard_name(int rank, int world_size) {
  return fmt::format("optimizer-{:05}-of-{:05}.safetensors", rank, world_size);
}

void StateShard::replicated(const std::string& name, ConstView flat) {
  const ConstView all = flat.reshaped({flat.elements()});
  add(kReplicated + name, all.rows(part_begin(flat.elements(), rank_, world_size_),
                                   part_begin(flat.elements(), rank_ + 1, world_size_)));
}

void StateShard::own(const std::string& name, ConstView flat) {
  add(kOwn + name, flat.reshaped({flat.elements()}));
}

void StateShard::add(std::string name, ConstView part) {
  Buffer& buffer = buffers_.emplace_back(Buffer{.name = std::move(name), .values = {}});
  buffer.values.resize(static_cast<size_t>(part.elements()));
  copy(View::of(buffer.values.data(), {part.elements()}), part);
}

int64_t StateShard::size_bytes() const {
  int64_t elements = 0;
  for (const Buffer& buffer : buffers_) elements += static_cast<int64_t>(buffer.values.size());
  return elements * static_cast<int64_t>(sizeof(float));
}

void StateShard::write(const Path& folder) const {
  std::vector<formats::NamedTensor> tensors;
  for (const Buffer& buffer : buffers_) {
    const int64_t count = static_cast<int64_t>(buffer.values.size());
    tensors.emplace_back(buffer.name, buffer.values.data(), Shape{count});
  }
  formats::write_safetensors(folder / shard_name(rank_, world_size_), std::move(tensors));
}

StateShards::StateShards(Path folder, std::vector<int> holders, Json scalars, int rank,
                         std::unique_ptr<ShardService> service)
    : folder_(std::move(folder)),
      holders_(std::move(holders)),
      scalars_(std::move(scalars)),
      rank_(rank),
      service_(std::move(service)),
      shards_(holders_.size()) {}

void StateShards::serve_while(const std::function<void()>& work) const {
  if (service_ == nullptr) return work();
  service_->serve_while(work);
}

const formats::TensorSource& StateShards::shard(int rank) const {
  std::unique_ptr<formats::TensorSource>& shard = shards_[static_cast<size_t>(rank)];
  if (shard != nullptr) return *shard;
  const std::string name = shard_name(rank, saved_world_size());
  const int holder = holders_[static_cast<size_t>(rank)];
  if (holder < 0) {
    shard = std::make_unique<formats::SafetensorsFile>(folder_ / name);
  } else {
    ONEBIT_INVARIANT(service_ != nullptr);
    shard = std::make_unique<RemoteShard>(*service_, holder, rank, name);
  }
  return *shard;
}

Json StateShards::scalar(const std::string& name) const {
  const auto found = scalars_.find(name);
  return found == scalars_.end() ? Json() : *found;
}

void StateShards::replicated(const std::string& name, View flat) const {
  const int64_t elements = flat.elements();
  Tensor staged(Device{}, DType::kF32, {elements});
  const int world = saved_world_size();
  for (int turn = 0; turn < world; ++turn) {
    // Readers start at different shards, so that no holder has to serve all of them at once.
    const int rank = (rank_ + turn) % world;
    const formats::TensorSource& shard = this->shard(rank);
    const size_t index = shard.index_of(kReplicated + name);
    const int64_t begin = part_begin(elements, rank, world);
    const int64_t count = part_begin(elements, rank + 1, world) - begin;
    require(shard.entries()[index].shape.elements() == count,
            "{}: the state \"{}\" has {} elements, but this model needs {}: the checkpoint belongs "
            "to a model of another shape",
            shard.place(), name, shard.entries()[index].shape.elements(), count);
    shard.read_f32(index, {staged.data<float>() + begin, static_cast<size_t>(count)});
  }
  copy(flat.reshaped({elements}), staged.view());
}

int64_t StateShards::own_elements(const std::string& name, int rank) const {
  const formats::TensorSource& shard = this->shard(rank);
  return shard.entries()[shard.index_of(kOwn + name)].shape.elements();
}

void StateShards::own_of(const std::string& name, int rank, int64_t begin,
                         std::span<float> to) const {
  const formats::TensorSource& shard = this->shard(rank);
  shard.read_f32(shard.index_of(kOwn + name), begin, to);
}

}  // namespace onebit::checkpoint
