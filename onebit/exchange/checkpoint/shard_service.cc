#include "onebit/exchange/checkpoint/shard_service.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "onebit/exchange/checkpoint/checkpoint_search.h"
#include "onebit/exchange/checkpoint/rank_exchange.h"
#include "onebit/exchange/checkpoint/state_shard.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/run_files.h"

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

class Repair {
 public:
  Repair(comm::Communicator& communicator, const Disks& disks, Path place, int world_size,
         std::span<const ShardRepair> repairs)
      : communicator_(communicator),
        disks_(disks),
        rank_(communicator.rank()),
        place_(std::move(place)),
        world_size_(world_size),
        repairs_(repairs) {}

  std::vector<std::string> run(const Path& root) {
    std::optional<FolderLock> lock;
    try_to([&] {
      lock.emplace(root);
      std::filesystem::remove_all(incoming());
      make_folder(incoming());
    });
    // Nothing is sent to a disk that could not prepare its folder.
    share_errors();
    std::vector<FileTransfer> transfers;
    for (const ShardRepair& repair : repairs_) {
      if (!errors_[disk(repair.to)].empty()) continue;
      const std::string name = shard_name(repair.shard, world_size_);
      transfers.push_back({.from = disks_.leader_of(repair.from),
                           .to = disks_.leader_of(repair.to),
                           .source = place_ / name,
                           .target = incoming() / name});
    }
    try {
      exchange_files(communicator_, transfers);
    } catch (const Error& error) {
      error_ = error.what();
    }
    try_to([&] { take_in(); });
    share_errors();
    if (takes()) {
      std::error_code ignored;
      std::filesystem::remove_all(incoming(), ignored);
    }
    std::vector<std::string> failures;
    for (const ShardRepair& repair : repairs_) failures.push_back(errors_[disk(repair.to)]);
    return failures;
  }

 private:
  static size_t disk(int number) { return static_cast<size_t>(number); }
  Path incoming() const { return place_ / run_files::kIncoming; }

  bool takes() const {
    return std::any_of(repairs_.begin(), repairs_.end(), [&](const ShardRepair& repair) {
      return disks_.leader_of(repair.to) == rank_;
    });
  }

  // Runs `work` on ranks that write to their disk, unless an error has occurred there.
  void try_to(const std::function<void()>& work) {
    if (!takes() || !error_.empty()) return;
    try {
      work();
    } catch (const std::exception& error) {
      error_ = failure_text(error);
    }
  }

  void share_errors() {
    const std::vector<std::string> texts = gather_texts(communicator_, error_);
    errors_.clear();
    for (int number = 0; number < disks_.count(); ++number) {
      errors_.push_back(texts[static_cast<size_t>(disks_.leader_of(number))]);
    }
  }

  void take_in() const {
    for (const ShardRepair& repair : repairs_) {
      if (disks_.leader_of(repair.to) != rank_) continue;
      const std::string flaw = flaw_of_shard(incoming(), repair.shard, world_size_);
      require(flaw.empty(), "{}", flaw);
      const std::string name = shard_name(repair.shard, world_size_);
      rename_durably(incoming() / name, place_ / name);
    }
  }

  comm::Communicator& communicator_;
  const Disks& disks_;
  int rank_;
  Path place_;
  int world_size_;
  std::span<const ShardRepair> repairs_;
  std::string error_;                // of this rank
  std::vector<std::string> errors_;  // [disks]
};

}  // namespace

std::vector<std::string> repair_shards(comm::Communicator& communicator,
                                       const CheckpointFolder& folder, const Disks& disks,
                                       const std::string& tag, int world_size,
                                       std::span<const ShardRepair> repairs) {
  if (repairs.empty()) return {};
  return Repair(communicator, disks, folder.folder(tag), world_size, repairs).run(folder.root());
}

}  // namespace onebit::checkpoint
