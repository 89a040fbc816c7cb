#include "onebit/exchange/checkpoint/checkpoint_recovery.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "onebit/exchange/checkpoint/checkpoint_repair.h"
#include "onebit/exchange/checkpoint/checkpoint_search.h"
#include "onebit/exchange/comm/collectives.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/base/wording.h"

namespace onebit::checkpoint {
namespace {

void compare_common_files(CheckpointCandidate& candidate) {
  size_t most = 0;
  for (size_t disk = 0; disk < candidate.on.size(); ++disk) {
    if (candidate.common[disk]) most = std::max(most, candidate.on[disk]->common_files.size());
  }
  // A disk that has lost a file of the model has fewer than the others.
  for (size_t disk = 0; disk < candidate.on.size(); ++disk) {
    if (candidate.common[disk] && candidate.on[disk]->common_files.size() < most) {
      candidate.common[disk] = false;
    }
  }
}

// The defects that this rank finds in its part of what its disk holds.
Json flaws_found(const CheckpointFolder& folder, const Disks& disks, int rank,
                 const CheckpointCandidate& candidate) {
  Json found = {{"shards", Json::array()}, {"common", ""}};
  const int disk = disks.disk_of(rank);
  const HeldCheckpoint* const held = candidate.on[static_cast<size_t>(disk)];
  if (held == nullptr) return found;
  const Path place = folder_of(folder, *held);
  const auto ranks = disks.ranks.ranks_of(disk).size();
  const auto local = static_cast<size_t>(disks.ranks.local_of(rank));
  for (size_t i = local; i < held->shards.size(); i += ranks) {
    const int shard = held->shards[i];
    std::string flaw = flaw_of_shard(place, shard, held->world_size);
    if (!flaw.empty()) found["shards"].push_back({shard, std::move(flaw)});
  }
  if (local == 0) found["common"] = flaw_of_common_files(place, *held);
  return found;
}

// The ranks of each disk read what it holds of the candidate and exchange the defects: a defective
// part is removed from the parts of its disk and added to the flaws. Collective.
void verify_checkpoint(comm::Communicator& communicator, const CheckpointFolder& folder,
                       const Disks& disks, CheckpointCandidate& candidate) {
  const Json mine = flaws_found(folder, disks, communicator.rank(), candidate);
  const std::vector<std::string> texts = comm::gather_texts(communicator, json_text(mine));
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    const auto disk = static_cast<size_t>(disks.disk_of(rank));
    const auto add_flaw = [&](int shard, const std::string& flaw) {
      candidate.flaws.push_back({.disk = disk, .shard = shard, .text = disks.on(disk, flaw)});
    };
    const Json theirs = Json::parse(texts[static_cast<size_t>(rank)]);
    for (const Json& one : theirs.at("shards")) {
      const int shard = one[0].get<int>();
      std::erase(candidate.shards[disk], shard);
      add_flaw(shard, one[1].get<std::string>());
    }
    if (const auto flaw = theirs.at("common").get<std::string>(); !flaw.empty()) {
      candidate.common[disk] = false;
      add_flaw(kNoShard, flaw);
    }
  }
  compare_common_files(candidate);
}

class Recovery {
 public:
  Recovery(comm::Communicator& communicator, const CheckpointFolder& folder, const Disks& disks)
      : communicator_(communicator),
        folder_(folder),
        disks_(disks),
        rank_(communicator.rank()),
        disk_(disks.disk_of(rank_)) {}

  std::optional<RecoveredCheckpoint> run(const std::string& wanted) {
    found_ = find_checkpoints(communicator_, folder_, disks_);
    std::vector<CheckpointCandidate> candidates = eligible(wanted);
    if (candidates.empty() && !wanted.empty()) refuse_absent(wanted);
    std::vector<std::string> reasons;
    for (CheckpointCandidate& candidate : candidates) {
      verify(candidate);
      if (candidate.complete()) {
        warn_of_older_checkpoint(candidate, reasons);
        warn_of_different_copies(candidate);
        return recovered(candidate);
      }
      reasons.push_back(cannot_be_used(candidate.tag, candidate.reason()));
    }
    for (const UnreadableCheckpoint& one : found_.unreadable) {
      reasons.push_back(cannot_be_used(one.tag, one.problem));
    }
    if (!wanted.empty()) refuse_requested(wanted, reasons.front());
    if (!reasons.empty()) refuse_all(candidates, reasons);
    require(
        !found_.absent_latest, "{}",
        absent_latest() +
            "; there is no other checkpoint: delete this file to start the run from the beginning");
    return std::nullopt;
  }

 private:
  // The checkpoints from which the run may continue, the best first.
  std::vector<CheckpointCandidate> eligible(const std::string& wanted) const {
    std::vector<CheckpointCandidate> candidates = found_.candidates;
    std::erase_if(candidates, [&](const CheckpointCandidate& one) {
      return wanted.empty() ? found_.last_step >= 0 && one.step > found_.last_step
                            : one.tag != wanted;
    });
    return candidates;
  }

  void verify(CheckpointCandidate& candidate) {
    if (candidate.complete()) verify_checkpoint(communicator_, folder_, disks_, candidate);
  }

  static std::string cannot_be_used(const std::string& tag, const std::string& reason) {
    return fmt::format("{} cannot be used: {}", tag, reason);
  }

  std::string absent_latest() const {
    const std::string file = (folder_.root() / run_files::kLatest).string();
    const std::string named = found_.absent_latest.value_or("");
    if (named.empty()) return file + ": is empty";
    return fmt::format("{}: names the checkpoint \"{}\", which does not exist", file, named);
  }

  // `reasons` belong to the newer checkpoints that were verified.
  void warn_of_older_checkpoint(const CheckpointCandidate& candidate,
                                std::vector<std::string> reasons) const {
    if (rank_ != 0) return;
    for (const UnreadableCheckpoint& one : found_.unreadable) {
      const int64_t step = step_of_tag(one.tag);
      const bool of_run = found_.last_step < 0 || step <= found_.last_step;
      if (of_run && step > candidate.step) reasons.push_back(cannot_be_used(one.tag, one.problem));
    }
    if (found_.absent_latest) reasons.push_back(absent_latest());
    if (reasons.empty()) return;
    log_warning("{}; the run continues from {} instead", fmt::join(reasons, "; "), candidate.tag);
  }

  std::string names_of_disks(const CheckpointCandidate& candidate) const {
    std::vector<std::string> names;
    for (size_t disk = 0; disk < candidate.on.size(); ++disk) {
      if (candidate.on[disk] != nullptr) names.push_back(disks_.names[disk]);
    }
    return listed(names);
  }

  // Warns of others of the same step, made by a run that some hosts continued without the others.
  void warn_of_different_copies(const CheckpointCandidate& candidate) const {
    if (rank_ != 0) return;
    for (const CheckpointCandidate& other : found_.candidates) {
      if (other.tag != candidate.tag || other.generation == candidate.generation) continue;
      log_warning(
          "{}: the checkpoint on {} differs from the one on {}: the run continues from the latter, "
          "which replaces the former",
          candidate.tag, names_of_disks(other), names_of_disks(candidate));
    }
  }

  RecoveredCheckpoint recovered(CheckpointCandidate& candidate) {
    if (disks_.count() == 1) return outcome(candidate);
    std::vector<std::string> report = {source_of(candidate)};
    complete_disks(communicator_, folder_, disks_, candidate, report);
    RecoveredCheckpoint recovered = outcome(candidate);
    recovered.report = std::move(report);
    return recovered;
  }

  RecoveredCheckpoint outcome(const CheckpointCandidate& candidate) const {
    RecoveredCheckpoint recovered = {.tag = candidate.tag, .holders = {}, .report = {}};
    recovered.other_tags = found_.tags();
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

  // Describes where the checkpoint was found.
  std::string source_of(const CheckpointCandidate& candidate) const {
    std::vector<std::string> have, lacking;
    for (size_t disk = 0; disk < candidate.on.size(); ++disk) {
      const std::string& name = disks_.names[disk];
      if (!candidate.shards[disk].empty()) {
        have.push_back(fmt::format("{} from {}", shard_list(candidate.shards[disk]), name));
      }
      if (!candidate.common[disk]) lacking.push_back(name);
    }
    std::string line = fmt::format("{}: {}", candidate.tag, listed(have));
    if (!lacking.empty()) {
      line += fmt::format("; {} received the model from another disk", listed(lacking));
    }
    return line;
  }

  // "; the newest other intact checkpoint is ..." with its --resume, or empty if there is none.
  std::string other_checkpoint(const std::string& wanted) {
    for (CheckpointCandidate& candidate : found_.candidates) {
      if (candidate.tag == wanted) continue;
      verify(candidate);
      if (!candidate.complete()) continue;
      return fmt::format("; the newest other intact checkpoint is {0}: --resume {0}",
                         candidate.tag);
    }
    return "";
  }

  [[noreturn]] void refuse_absent(const std::string& wanted) {
    for (const UnreadableCheckpoint& one : found_.unreadable) {
      if (one.tag == wanted) refuse_requested(wanted, cannot_be_used(one.tag, one.problem));
    }
    refuse_absent_tag(folder_.root(), wanted, found_.tags());
  }

  [[noreturn]] void refuse_requested(const std::string& wanted, const std::string& reason) {
    fail("{}: {}{}", folder_.root().string(), reason, other_checkpoint(wanted));
  }

  [[noreturn]] void refuse_all(const std::vector<CheckpointCandidate>& candidates,
                               const std::vector<std::string>& reasons) const {
    const bool apart = disks_.count() > 1 || std::any_of(candidates.begin(), candidates.end(),
                                                         [](const CheckpointCandidate& one) {
                                                           return one.of_several_disks();
                                                         });
    fail("{}: no checkpoint is intact{}: {}; {}", folder_.root().string(),
         apart ? " on the disks of " + listed(disks_.names) : "", fmt::join(reasons, "; "),
         apart ? "restart the hosts that store the missing parts (with run.checkpoint_copies 2, a "
                 "run survives the loss of one host)"
               : "restore the missing or damaged files from a copy of the folder, or start a new "
                 "run in another folder");
  }

  comm::Communicator& communicator_;
  const CheckpointFolder& folder_;
  const Disks& disks_;
  int rank_, disk_;
  FoundCheckpoints found_;
};

}  // namespace

std::optional<RecoveredCheckpoint> recover_checkpoint(comm::Communicator& communicator,
                                                      const CheckpointFolder& folder,
                                                      const Disks& disks, const std::string& tag) {
  return Recovery(communicator, folder, disks).run(tag);
}

}  // namespace onebit::checkpoint
