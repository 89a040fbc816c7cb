#include "onebit/engine/checkpoint_recovery.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "onebit/base/error.h"
#include "onebit/base/folder.h"
#include "onebit/base/folder_lock.h"
#include "onebit/base/json.h"
#include "onebit/base/listed.h"
#include "onebit/base/log.h"
#include "onebit/base/run_files.h"
#include "onebit/engine/checkpoint_candidate.h"
#include "onebit/engine/file_exchange.h"
#include "onebit/engine/rank_texts.h"
#include "onebit/engine/shard_repair.h"

namespace onebit::engine {
namespace {

constexpr size_t kMostListed = 8;

class Recovery {
 public:
  Recovery(comm::Communicator& communicator, const CheckpointFolder& folder, const Disks& disks)
      : communicator_(communicator),
        folder_(folder),
        disks_(disks),
        rank_(communicator.rank()),
        disk_(disks.disk_of(rank_)) {}

  std::optional<RecoveredCheckpoint> run(const std::string& wanted) {
    gather();
    std::vector<CheckpointCandidate> candidates = order(wanted);
    if (candidates.empty()) {
      if (!wanted.empty()) refuse_absent_tag(folder_.root(), wanted, tags_);
      require(unreadable_.empty(), "{}: no checkpoint can be read: {}", folder_.root().string(),
              fmt::join(unreadable_, "; "));
      return std::nullopt;
    }
    std::vector<std::string> reasons;
    for (CheckpointCandidate& candidate : candidates) {
      if (candidate.whole()) verify(candidate);
      if (candidate.whole()) {
        if (!reasons.empty() && rank_ == 0) {
          log_warning("{}: the run goes back to {}", fmt::join(reasons, "; "), candidate.tag);
        }
        repair(candidate);
        std::vector<std::string> report = {source_of(candidate)};
        repair_shards_of(candidate, report);
        RecoveredCheckpoint recovered = outcome(candidate);
        recovered.report = std::move(report);
        return recovered;
      }
      reasons.push_back(fmt::format("{} cannot be used: {}", candidate.tag, candidate.reason()));
    }
    refuse(wanted, reasons, candidates.back());
  }

 private:
  void gather() {
    const std::string mine =
        disks_.leads(rank_) ? contents_of_disk(folder_).to_json().dump() : std::string();
    const std::vector<std::string> texts = gather_texts(communicator_, mine);
    for (int disk = 0; disk < disks_.count(); ++disk) {
      const auto leader = static_cast<size_t>(disks_.leader_of(disk));
      contents_.push_back(DiskContents::from_json(Json::parse(texts[leader])));
      for (const HeldCheckpoint& held : contents_.back().held) {
        if (held.world_size == 0 && held.published) {
          unreadable_.push_back(fmt::format("{} of {}: its state.json is damaged", held.tag,
                                            disks_.names[static_cast<size_t>(disk)]));
        }
      }
    }
  }

  // Every checkpoint, as far as the names of its files say.
  std::vector<CheckpointCandidate> all() const {
    std::map<std::pair<std::string, std::string>, CheckpointCandidate> found;
    const auto disks = static_cast<size_t>(disks_.count());
    for (size_t disk = 0; disk < disks; ++disk) {
      for (const HeldCheckpoint& held : contents_[disk].held) {
        if (held.world_size == 0) continue;
        CheckpointCandidate& candidate = found[{held.tag, held.generation}];
        candidate.tag = held.tag;
        candidate.generation = held.generation;
        candidate.step = held.step;
        candidate.world_size = held.world_size;
        candidate.published = candidate.published || held.published;
        candidate.on.resize(disks);
        candidate.shards.resize(disks);
        candidate.common.resize(disks);
        if (candidate.on[disk] != nullptr && candidate.on[disk]->published) continue;
        candidate.on[disk] = &held;
        candidate.shards[disk] = held.shards;
        candidate.common[disk] = !held.common_files.empty();
      }
    }
    std::vector<CheckpointCandidate> candidates;
    for (auto& [key, candidate] : found) candidates.push_back(std::move(candidate));
    return candidates;
  }

  // Those that the run may continue from, the best first. What no disk has published was never
  // finished; what is newer than every `latest` is no part of the run any more, which was taken
  // back.
  std::vector<CheckpointCandidate> order(const std::string& wanted) {
    std::vector<CheckpointCandidate> candidates = all();
    std::erase_if(candidates, [](const CheckpointCandidate& one) { return !one.published; });
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const CheckpointCandidate& a, const CheckpointCandidate& b) {
                       return std::tie(a.step, a.generation) > std::tie(b.step, b.generation);
                     });
    for (const CheckpointCandidate& one : candidates) {
      if (tags_.empty() || tags_.back() != one.tag) tags_.push_back(one.tag);
    }
    int64_t newest = -1;
    for (size_t disk = 0; disk < contents_.size(); ++disk) {
      for (const CheckpointCandidate& one : candidates) {
        if (one.on[disk] != nullptr && one.on[disk]->published &&
            one.tag == contents_[disk].latest) {
          newest = std::max(newest, one.step);
        }
      }
    }
    std::erase_if(candidates, [&](const CheckpointCandidate& one) {
      return wanted.empty() ? newest >= 0 && one.step > newest : one.tag != wanted;
    });
    return candidates;
  }

  // The ranks of each disk read what it holds of the candidate, and send each other what is wrong.
  void verify(CheckpointCandidate& candidate) {
    Json found = {{"shards", Json::array()}, {"common", ""}};
    if (const HeldCheckpoint* held = candidate.on[static_cast<size_t>(disk_)]) {
      const Path place = folder_of(folder_, *held);
      const auto ranks = disks_.ranks.ranks_of(disk_).size();
      const auto local = static_cast<size_t>(disks_.ranks.local_of(rank_));
      for (size_t i = local; i < held->shards.size(); i += ranks) {
        const int shard = held->shards[i];
        std::string flaw = flaw_of_shard(place, shard, held->world_size);
        if (!flaw.empty()) found["shards"].push_back({shard, std::move(flaw)});
      }
      if (local == 0) found["common"] = flaw_of_common_files(place, *held);
    }
    const std::vector<std::string> texts = gather_texts(communicator_, found.dump());
    for (int rank = 0; rank < communicator_.world_size(); ++rank) {
      const auto disk = static_cast<size_t>(disks_.disk_of(rank));
      const Json theirs = Json::parse(texts[static_cast<size_t>(rank)]);
      for (const Json& one : theirs.at("shards")) {
        const int shard = one[0].get<int>();
        std::erase(candidate.shards[disk], shard);
        add_flaw(candidate, disk, shard, one[1].get<std::string>());
      }
      if (const auto flaw = theirs.at("common").get<std::string>(); !flaw.empty()) {
        candidate.common[disk] = false;
        add_flaw(candidate, disk, kNoShard, flaw);
      }
    }
    compare_common_files(candidate);
  }

  // A disk from which a file of the model was lost has fewer than the others.
  static void compare_common_files(CheckpointCandidate& candidate) {
    size_t most = 0;
    for (size_t disk = 0; disk < candidate.on.size(); ++disk) {
      if (candidate.common[disk]) most = std::max(most, candidate.on[disk]->common_files.size());
    }
    for (size_t disk = 0; disk < candidate.on.size(); ++disk) {
      if (candidate.common[disk] && candidate.on[disk]->common_files.size() < most) {
        candidate.common[disk] = false;
      }
    }
  }

  void add_flaw(CheckpointCandidate& candidate, size_t disk, int shard,
                const std::string& flaw) const {
    candidate.flaws.push_back(
        {.disk = disk, .shard = shard, .text = fmt::format("{}: {}", disks_.names[disk], flaw)});
  }

  // Afterwards the folder of the tag is on every disk, under its final name.
  void repair(const CheckpointCandidate& candidate) {
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
    // Beside the folder where there is none of this checkpoint, beside its model where there is.
    Path incoming = own == nullptr ? folder_.partial_folder(candidate.tag)
                                   : folder_of(folder_, *own) / run_files::kIncoming;
    std::optional<FolderLock> lock;
    constexpr const char* kWhat = "the checkpoint was not restored to this disk";
    run_on_all(communicator_, kWhat, [&] {
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
    run_on_all(communicator_, kWhat, [&] { exchange_files(communicator_, transfers); });
    run_on_all(communicator_, kWhat, [&] {
      if (!leads) return;
      if (lacks && own != nullptr) take_in(incoming, folder_of(folder_, *own));
      if (own != nullptr && own->published) return;
      const Path partial = folder_.partial_folder(candidate.tag);
      sync_tree(partial);
      replace_folder(partial, place);
    });
  }

  // Which disk is to get which shard: what was damaged there, and what it keeps as state.json says
  // and has lost.
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

  // Makes them, and says so.
  void repair_shards_of(CheckpointCandidate& candidate, std::vector<std::string>& report) {
    const std::vector<ShardRepair> repairs = repairs_of(candidate);
    const std::vector<std::string> failures =
        repair_shards(communicator_, folder_, disks_, candidate.tag, candidate.world_size, repairs);
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
                                        ? ": replaced from another disk"
                                        : ": read from another disk"));
    }
    for (const auto& [disk, shards] : repaired) {
      report.push_back(
          fmt::format("{} got {} from another disk", disks_.names[disk], shard_list(shards)));
    }
    for (const auto& [disk, failure] : failed) {
      report.push_back(fmt::format("{} keeps fewer copies until the next checkpoint: {}",
                                   disks_.names[disk], failure));
    }
  }

  // Puts the files that every disk has into a folder that has shards already.
  static void take_in(const Path& incoming, const Path& folder) {
    sync_tree(incoming);
    replace_folder(incoming / run_files::kModel, folder / run_files::kModel);
    rename_durably(incoming / run_files::kState, folder / run_files::kState);
    std::filesystem::remove_all(incoming);
  }

  RecoveredCheckpoint outcome(const CheckpointCandidate& candidate) const {
    RecoveredCheckpoint recovered = {.tag = candidate.tag, .holders = {}, .report = {}};
    recovered.other_tags = tags_;
    std::erase(recovered.other_tags, candidate.tag);
    for (int shard = 0; shard < candidate.world_size; ++shard) {
      std::vector<int> on;
      for (int disk = 0; disk < disks_.count(); ++disk) {
        if (candidate.has(static_cast<size_t>(disk), shard)) on.push_back(disk);
      }
      recovered.fetches = recovered.fetches || static_cast<int>(on.size()) < disks_.count();
      if (std::find(on.begin(), on.end(), disk_) != on.end()) {
        recovered.holders.push_back(-1);
        continue;
      }
      const auto ranks = disks_.ranks.ranks_of(on[static_cast<size_t>(disk_) % on.size()]);
      recovered.holders.push_back(ranks[static_cast<size_t>(shard) % ranks.size()]);
    }
    return recovered;
  }

  // Where the run was found.
  std::string source_of(const CheckpointCandidate& candidate) const {
    std::vector<std::string> have, lacking;
    for (size_t disk = 0; disk < candidate.on.size(); ++disk) {
      const std::string& name = disks_.names[disk];
      if (!candidate.shards[disk].empty()) {
        have.push_back(fmt::format("{} from {}", shard_list(candidate.shards[disk]), name));
      }
      if (!candidate.common[disk]) lacking.push_back(name);
    }
    std::string line = fmt::format("{}: {}", candidate.tag, listed(have, kMostListed));
    if (!lacking.empty()) {
      line += fmt::format("; {} got the model from another disk", listed(lacking, kMostListed));
    }
    return line;
  }

  [[noreturn]] void refuse(const std::string& wanted, const std::vector<std::string>& reasons,
                           const CheckpointCandidate& last) const {
    std::vector<std::string> others = tags_;
    std::erase(others, last.tag);
    std::string ways = "start the hosts again that kept what is missing";
    if (!wanted.empty() && !others.empty()) {
      ways += fmt::format(", or resume from another checkpoint: --resume {}",
                          fmt::join(others, " or --resume "));
    }
    fail(
        "{}: no checkpoint is whole on the disks of {}: {}; {} (with run.checkpoint_copies 2 a "
        "lost host loses nothing)",
        folder_.root().string(), listed(disks_.names, kMostListed), fmt::join(reasons, "; "), ways);
  }

  comm::Communicator& communicator_;
  const CheckpointFolder& folder_;
  const Disks& disks_;
  int rank_, disk_;
  std::vector<DiskContents> contents_;  // [disks]
  std::vector<std::string> unreadable_;
  std::vector<std::string> tags_;  // of all disks, newest first
};

}  // namespace

std::optional<RecoveredCheckpoint> recover_checkpoint(comm::Communicator& communicator,
                                                      const CheckpointFolder& folder,
                                                      const Disks& disks, const std::string& tag) {
  return Recovery(communicator, folder, disks).run(tag);
}

}  // namespace onebit::engine
