#include "onebit/exchange/checkpoint/state_shard.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "onebit/data/formats/safetensors.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::checkpoint {

namespace {

constexpr int64_t kPieceBytes = int64_t{4} << 20;
// How long a rank without a request delays the others in a round.
constexpr std::chrono::microseconds kIdle{500};

}  // namespace

ShardService::ShardService(std::unique_ptr<comm::Communicator> communicator,
                           std::function<Path(int shard)> path_of)
    : communicator_(std::move(communicator)), path_of_(std::move(path_of)) {}

void ShardService::serve_while(const std::function<void()>& work) {
  done_ = false;
  std::thread thread([this] {
    try {
      comm::run_rank(*communicator_, [this] {
        try {
          rounds();
        } catch (const std::exception&) {
          const std::lock_guard lock(mutex_);
          if (!stopping_) throw;  // otherwise the error of `work` is the one to report
        }
      });
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
    }
  });
  try {
    work();
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      done_ = true;
      changed_.notify_all();
    }
    communicator_->interrupt();
    thread.join();
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  thread.join();
  files_.clear();
  if (error_) std::rethrow_exception(error_);
}

void ShardService::fetch(int holder, int shard, uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const auto part = std::min(to.size(), static_cast<size_t>(kPieceBytes));
    get({.holder = holder,
         .shard = shard,
         .offset = static_cast<int64_t>(offset),
         .bytes = static_cast<int64_t>(part)},
        to.first(part));
    offset += part;
    to = to.subspan(part);
  }
}

uint64_t ShardService::file_bytes(int holder, int shard) {
  uint64_t bytes = 0;
  get({.holder = holder, .shard = shard}, std::as_writable_bytes(std::span(&bytes, 1)));
  return bytes;
}

void ShardService::get(Request request, std::span<std::byte> to) {
  std::unique_lock lock(mutex_);
  request_ = request;
  to_ = to;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !request_ || error_; });
  if (error_) std::rethrow_exception(error_);
}

// This rank's request for a round: waits briefly for one.
ShardService::Request ShardService::next_request() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kIdle, [this] { return request_ || done_; });
  if (request_) return *request_;
  return {.done = done_ ? 1 : 0};
}

void ShardService::rounds() {
  std::vector<Request> requests(static_cast<size_t>(communicator_->world_size()));
  for (;;) {
    const Request own = next_request();
    communicator_->all_gather(std::as_bytes(std::span(&own, 1)),
                              std::as_writable_bytes(std::span(requests)));
    const auto is_done = [](const Request& request) { return request.done != 0; };
    if (std::all_of(requests.begin(), requests.end(), is_done)) return;
    const auto wants = [](const Request& request) { return request.holder >= 0; };
    if (std::any_of(requests.begin(), requests.end(), wants)) serve(requests, own);
  }
}

void ShardService::serve(std::span<const Request> requests, const Request& own) {
  const auto size_of = [](const Request& request) {
    return request.bytes == 0 ? static_cast<int64_t>(sizeof(uint64_t)) : request.bytes;
  };
  std::vector<int64_t> send_bytes(requests.size()), receive_bytes(requests.size());
  std::vector<std::byte> send;
  for (size_t rank = 0; rank < requests.size(); ++rank) {
    if (requests[rank].holder != communicator_->rank()) continue;
    append(requests[rank], send);
    send_bytes[rank] = size_of(requests[rank]);
  }
  std::span<std::byte> receive;
  if (own.holder >= 0) {
    receive = to_;
    receive_bytes[static_cast<size_t>(own.holder)] = size_of(own);
  }
  communicator_->all_to_all_v(
      {.send = send, .send_bytes = send_bytes, .receive = receive, .receive_bytes = receive_bytes});
  if (own.holder < 0) return;
  const std::lock_guard lock(mutex_);
  fetched_bytes_ += size_of(own);
  request_.reset();
  changed_.notify_all();
}

void ShardService::append(const Request& request, std::vector<std::byte>& to) {
  const auto file =
      files_.find(request.shard) != files_.end()
          ? files_.find(request.shard)
          : files_.emplace(request.shard, path_of_(static_cast<int>(request.shard))).first;
  const std::span<const std::byte> all = file->second.bytes();
  if (request.bytes == 0) {
    const uint64_t length = all.size();
    const auto* bytes = reinterpret_cast<const std::byte*>(&length);
    to.insert(to.end(), bytes, bytes + sizeof length);
    return;
  }
  const auto begin = static_cast<size_t>(request.offset),
             count = static_cast<size_t>(request.bytes);
  require(begin <= all.size() && count <= all.size() - begin,
          "{}: the file has {} bytes, but bytes [{}, {}) were requested: it changed while the run "
          "was being restored",
          file->second.path().string(), all.size(), begin, begin + count);
  const auto part = all.subspan(begin, count);
  to.insert(to.end(), part.begin(), part.end());
}

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
                         std::unique_ptr<comm::Communicator> serving)
    : folder_(std::move(folder)),
      holders_(std::move(holders)),
      scalars_(std::move(scalars)),
      rank_(rank),
      shards_(holders_.size()) {
  if (serving == nullptr) return;
  service_ = std::make_unique<ShardService>(
      std::move(serving), [folder = folder_, world = saved_world_size()](int shard) {
        return folder / shard_name(shard, world);
      });
}

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
