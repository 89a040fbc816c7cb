#include "onebit/exchange/checkpoint/shard_repair.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "onebit/exchange/checkpoint/checkpoint_contents.h"
#include "onebit/exchange/checkpoint/file_exchange.h"
#include "onebit/exchange/checkpoint/rank_texts.h"
#include "onebit/exchange/checkpoint/state_shard.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/run_files.h"

namespace onebit::checkpoint {
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
