#include "onebit/exchange/checkpoint/checkpoint_repair.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "onebit/exchange/checkpoint/file_exchange.h"
#include "onebit/exchange/checkpoint/state_shard.h"
#include "onebit/exchange/comm/collectives.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/run_files.h"

namespace onebit::checkpoint {
namespace {

// A shard that a disk should have, and has lost or damaged.
struct ShardRepair {
  int shard = 0;
  int from = 0, to = 0;  // disks, which differ
};

// Each shard is written to a temporary file, synced, verified and renamed.
class ShardRepairs {
 public:
  // `repairs` is the same on every rank.
  ShardRepairs(comm::Communicator& communicator, const CheckpointFolder& folder, const Disks& disks,
               const CheckpointCandidate& candidate, std::span<const ShardRepair> repairs)
      : communicator_(communicator),
        disks_(disks),
        rank_(communicator.rank()),
        root_(folder.root()),
        place_(folder.folder(candidate.tag)),
        world_size_(candidate.world_size),
        repairs_(repairs) {}

  // Returns in the order of the repairs why those to a disk failed (it is full). Empty: success. A
  // failure does not prevent the run, so it is no error. Collective.
  std::vector<std::string> run() {
    if (repairs_.empty()) return {};
    std::optional<FolderLock> lock;
    try_to([&] {
      lock.emplace(root_);
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
    const std::vector<std::string> texts = comm::gather_texts(communicator_, error_);
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
  Path root_, place_;
  int world_size_;
  std::span<const ShardRepair> repairs_;
  std::string error_;                // of this rank
  std::vector<std::string> errors_;  // [disks]
};

class Completion {
 public:
  Completion(comm::Communicator& communicator, const CheckpointFolder& folder, const Disks& disks)
      : communicator_(communicator),
        folder_(folder),
        disks_(disks),
        rank_(communicator.rank()),
        disk_(disks.disk_of(rank_)) {}

  // Afterwards every disk has the folder of the tag, under its final name.
  void bring_common_files(const CheckpointCandidate& candidate) const {
    const auto disks = static_cast<size_t>(disks_.count());
    size_t source = 0;
    while (!candidate.common[source]) ++source;
    const bool works =
        std::any_of(candidate.on.begin(), candidate.on.end(),
                    [](const auto* held) { return held == nullptr || !held->published; }) ||
        std::count(candidate.common.begin(), candidate.common.end(), false) > 0;
    if (!works) return;
    const HeldCheckpoint* const own = candidate.on[static_cast<size_t>(disk_)];
    const bool leads = disks_.leads(rank_);
    const bool lacks = !candidate.common[static_cast<size_t>(disk_)];
    const Path place = folder_.folder(candidate.tag);
    // Next to the folder if the disk has none of this checkpoint, else next to its model.
    Path incoming = own == nullptr ? folder_.partial_folder(candidate.tag)
                                   : folder_of(folder_, *own) / run_files::kIncoming;
    std::optional<FolderLock> lock;
    constexpr const char* kWhat = "the checkpoint was not restored to this disk";
    comm::run_on_all(communicator_, kWhat, [&] {
      if (!leads || (own != nullptr && own->published && !lacks)) return;
      make_folder(folder_.root());
      lock.emplace(folder_.root());
      if (!lacks) return;
      std::filesystem::remove_all(incoming);
      make_folder(incoming / run_files::kModel);
    });
    std::vector<FileTransfer> transfers;
    const HeldCheckpoint& whole = *candidate.on[source];
    for (size_t disk = 0; disk < disks; ++disk) {
      if (candidate.common[disk]) continue;
      for (const auto& [name, bytes] : whole.common_files) {
        transfers.push_back({.from = disks_.leader_of(static_cast<int>(source)),
                             .to = disks_.leader_of(static_cast<int>(disk)),
                             .source = folder_of(folder_, whole) / name,
                             .target = incoming / name});
      }
    }
    comm::run_on_all(communicator_, kWhat, [&] { exchange_files(communicator_, transfers); });
    comm::run_on_all(communicator_, kWhat, [&] {
      if (!leads) return;
      if (lacks && own != nullptr) move_into(incoming, folder_of(folder_, *own));
      if (own != nullptr && own->published) return;
      const Path partial = folder_.partial_folder(candidate.tag);
      sync_tree(partial);
      replace_folder(partial, place);
    });
  }

  // Makes the repairs and reports them.
  void bring_shards(CheckpointCandidate& candidate, std::vector<std::string>& report) const {
    const std::vector<ShardRepair> repairs = repairs_of(candidate);
    const std::vector<std::string> failures =
        ShardRepairs(communicator_, folder_, disks_, candidate, repairs).run();
    std::map<size_t, std::vector<int>> repaired;
    std::map<size_t, std::string> failed;
    for (size_t i = 0; i < repairs.size(); ++i) {
      const auto disk = static_cast<size_t>(repairs[i].to);
      if (!failures[i].empty()) {
        failed[disk] = failures[i];
        continue;
      }
      repaired[disk].push_back(repairs[i].shard);
      std::vector<int>& own = candidate.shards[disk];
      own.insert(std::upper_bound(own.begin(), own.end(), repairs[i].shard), repairs[i].shard);
    }
    for (const CheckpointFlaw& flaw : candidate.flaws) {
      report.push_back(flaw.text + (flaw.shard == kNoShard || candidate.has(flaw.disk, flaw.shard)
                                        ? ": replaced by the copy of another disk"
                                        : ": read from another disk"));
    }
    for (const auto& [disk, shards] : repaired) {
      report.push_back(
          fmt::format("{} received {} from another disk", disks_.names[disk], shard_list(shards)));
    }
    for (const auto& [disk, failure] : failed) {
      report.push_back(fmt::format("{} keeps fewer copies until the next checkpoint: {}",
                                   disks_.names[disk], failure));
    }
  }

 private:
  // Which disk receives which shard: those damaged there, and those that it keeps according to
  // state.json and has lost.
  std::vector<ShardRepair> repairs_of(const CheckpointCandidate& candidate) const {
    std::vector<ShardRepair> repairs;
    for (size_t disk = 0; disk < candidate.shards.size(); ++disk) {
      std::set<int> wanted = candidate.kept_with_copies_by(disks_.names[disk]);
      for (const CheckpointFlaw& flaw : candidate.flaws) {
        if (flaw.disk == disk && flaw.shard != kNoShard) wanted.insert(flaw.shard);
      }
      for (const int shard : wanted) {
        if (candidate.has(disk, shard)) continue;
        for (size_t other = 0; other < candidate.shards.size(); ++other) {
          if (!candidate.has(other, shard)) continue;
          repairs.push_back(
              {.shard = shard, .from = static_cast<int>(other), .to = static_cast<int>(disk)});
          break;
        }
      }
    }
    return repairs;
  }

  // Moves the files that every disk has into a folder that already has shards.
  static void move_into(const Path& incoming, const Path& folder) {
    sync_tree(incoming);
    replace_folder(incoming / run_files::kModel, folder / run_files::kModel);
    rename_durably(incoming / run_files::kState, folder / run_files::kState);
    std::filesystem::remove_all(incoming);
  }

  comm::Communicator& communicator_;
  const CheckpointFolder& folder_;
  const Disks& disks_;
  int rank_, disk_;
};

}  // namespace

void complete_disks(comm::Communicator& communicator, const CheckpointFolder& folder,
                    const Disks& disks, CheckpointCandidate& candidate,
                    std::vector<std::string>& report) {
  const Completion completion(communicator, folder, disks);
  completion.bring_common_files(candidate);
  completion.bring_shards(candidate, report);
}

}  // namespace onebit::checkpoint
