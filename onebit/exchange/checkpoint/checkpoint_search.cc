#include "onebit/exchange/checkpoint/checkpoint_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "onebit/exchange/checkpoint/rank_exchange.h"
#include "onebit/exchange/checkpoint/state_shard.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/base/wording.h"

namespace onebit::checkpoint {

namespace {

// Calls `use` with each shard and the name of a disk that keeps it, according to state.json, whose
// checksum may not have been verified yet: invalid entries are skipped.
template <typename Use>
void for_keepers(const Json& disks, const Use& use) {
  if (!disks.is_object()) return;
  const Json names = disks.value("hosts", Json::array());
  const Json of_rank = disks.value("of_rank", Json::array());
  const Json copies = disks.value("copies", Json(1));
  const auto counts = [](const Json& value) {
    return value.is_number_integer() && value.get<int64_t>() >= 0;
  };
  const size_t count = names.size();
  if (!names.is_array() || count == 0 || !of_rank.is_array() || !counts(copies)) return;
  const size_t kept = std::min(copies.get<size_t>(), count);
  for (size_t shard = 0; shard < of_rank.size(); ++shard) {
    if (!counts(of_rank[shard])) continue;
    const auto first = of_rank[shard].get<size_t>();
    for (size_t copy = 0; copy < kept; ++copy) {
      const Json& name = names[(first % count + copy) % count];
      if (name.is_string()) use(static_cast<int>(shard), name.get<std::string>());
    }
  }
}

// Returns `disks` of state.json, which is the same on all disks that hold any part of the
// checkpoint.
const Json& disks_of(const CheckpointCandidate& candidate) {
  return (*std::find_if(candidate.on.begin(), candidate.on.end(),
                        [](const auto* held) { return held != nullptr; }))
      ->disks;
}

// Names the disks that kept these shards, for an error.
std::string keepers(const CheckpointCandidate& candidate, const std::vector<int>& shards) {
  std::vector<std::string> found;
  for_keepers(disks_of(candidate), [&](int shard, const std::string& name) {
    if (std::find(shards.begin(), shards.end(), shard) == shards.end()) return;
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  });
  return found.empty() ? "" : fmt::format(", stored on {},", listed(found));
}

}  // namespace

bool CheckpointCandidate::has(size_t disk, int shard) const {
  return std::binary_search(shards[disk].begin(), shards[disk].end(), shard);
}

std::vector<int> CheckpointCandidate::missing() const {
  std::vector<int> lacking;
  for (int shard = 0; shard < world_size; ++shard) {
    bool there = false;
    for (size_t disk = 0; disk < shards.size(); ++disk) there = there || has(disk, shard);
    if (!there) lacking.push_back(shard);
  }
  return lacking;
}

bool CheckpointCandidate::complete() const {
  return std::count(common.begin(), common.end(), true) > 0 && missing().empty();
}

std::set<int> CheckpointCandidate::kept_with_copies_by(const std::string& name) const {
  const Json& disks = disks_of(*this);
  std::set<int> kept;
  if (!disks.is_object() || disks.value("copies", 1) < 2) return kept;
  for_keepers(disks, [&](int shard, const std::string& keeper) {
    if (keeper == name) kept.insert(shard);
  });
  return kept;
}

bool CheckpointCandidate::of_several_disks() const {
  return disks_of(*this).is_object();
}

std::string CheckpointCandidate::reason() const {
  std::string reason;
  if (const std::vector<int> lacking = missing(); !lacking.empty()) {
    reason = fmt::format("{} of {}{} {} missing or damaged", shard_list(lacking), world_size,
                         keepers(*this, lacking), lacking.size() == 1 ? "is" : "are");
    if (flaws.empty()) reason += fmt::format(" (no {})", shard_name(lacking.front(), world_size));
  } else {
    reason = on.size() == 1 ? "its state.json or its model is incomplete or damaged"
                            : "no disk has an intact state.json and model";
    if (flaws.empty()) reason += fmt::format(" (no folder {})", run_files::kModel);
  }
  for (const CheckpointFlaw& flaw : flaws) reason += fmt::format(" ({})", flaw.text);
  return reason;
}

std::string shard_list(const std::vector<int>& shards) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < shards.size();) {
    size_t last = i;
    while (last + 1 < shards.size() && shards[last + 1] == shards[last] + 1) ++last;
    runs.push_back(last == i ? fmt::format("{}", shards[i])
                             : fmt::format("{}-{}", shards[i], shards[last]));
    i = last + 1;
  }
  return fmt::format("shard{} {}", shards.size() == 1 ? "" : "s", fmt::join(runs, ", "));
}

namespace {

std::vector<DiskContents> gather_contents(comm::Communicator& communicator,
                                          const CheckpointFolder& folder, const Disks& disks) {
  const std::string mine = disks.leads(communicator.rank())
                               ? json_text(contents_of_disk(folder).to_json())
                               : std::string();
  const std::vector<std::string> texts = gather_texts(communicator, mine);
  std::vector<DiskContents> contents;
  for (int disk = 0; disk < disks.count(); ++disk) {
    const auto leader = static_cast<size_t>(disks.leader_of(disk));
    contents.push_back(DiskContents::from_json(Json::parse(texts[leader])));
  }
  return contents;
}

std::vector<CheckpointCandidate> candidates_in(const std::vector<DiskContents>& contents) {
  std::map<std::pair<std::string, std::string>, CheckpointCandidate> found;
  const size_t disks = contents.size();
  for (size_t disk = 0; disk < disks; ++disk) {
    for (const HeldCheckpoint& held : contents[disk].held) {
      if (!held.problem.empty()) continue;
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
  for (auto& [key, candidate] : found) {
    if (candidate.published) candidates.push_back(std::move(candidate));
  }
  return candidates;
}

bool is_named_latest(const CheckpointCandidate& candidate,
                     const std::vector<DiskContents>& contents) {
  for (size_t disk = 0; disk < contents.size(); ++disk) {
    const HeldCheckpoint* const held = candidate.on[disk];
    if (held != nullptr && held->published && candidate.tag == contents[disk].latest) return true;
  }
  return false;
}

// Returns -1 if `latest` names no step.
int64_t step_of_latest(const DiskContents& disk) {
  for (const HeldCheckpoint& held : disk.held) {
    if (held.published && held.problem.empty() && held.tag == disk.latest) return held.step;
  }
  return step_of_tag(disk.latest);
}

std::vector<UnreadableCheckpoint> unreadable_in(const FoundCheckpoints& found, const Disks& disks) {
  const std::vector<std::string> readable = found.tags();
  std::vector<UnreadableCheckpoint> unreadable;
  for (size_t disk = 0; disk < found.contents.size(); ++disk) {
    for (const HeldCheckpoint& held : found.contents[disk].held) {
      const bool known = std::find(readable.begin(), readable.end(), held.tag) != readable.end();
      if (held.problem.empty() || !held.published || known) continue;
      unreadable.push_back({.tag = held.tag, .problem = disks.on(disk, held.problem)});
    }
  }
  std::stable_sort(unreadable.begin(), unreadable.end(), [](const auto& one, const auto& other) {
    return step_of_tag(one.tag) > step_of_tag(other.tag);
  });
  return unreadable;
}

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

}  // namespace

std::vector<std::string> FoundCheckpoints::tags() const {
  std::vector<std::string> tags;
  for (const CheckpointCandidate& one : candidates) {
    if (tags.empty() || tags.back() != one.tag) tags.push_back(one.tag);
  }
  return tags;
}

FoundCheckpoints find_checkpoints(comm::Communicator& communicator, const CheckpointFolder& folder,
                                  const Disks& disks) {
  FoundCheckpoints found;
  found.contents = gather_contents(communicator, folder, disks);
  found.candidates = candidates_in(found.contents);
  // A copy under another name is as new as its original.
  const auto age = [&](const CheckpointCandidate& one) {
    return std::tuple(one.step, is_named_latest(one, found.contents), step_of_tag(one.tag) >= 0,
                      one.generation);
  };
  std::stable_sort(found.candidates.begin(), found.candidates.end(),
                   [&](const auto& one, const auto& other) { return age(one) > age(other); });
  found.unreadable = unreadable_in(found, disks);
  for (const DiskContents& disk : found.contents) {
    found.last_step = std::max(found.last_step, step_of_latest(disk));
    if (disk.absent_latest) found.absent_latest = disk.absent_latest;
  }
  if (found.last_step >= 0) found.absent_latest.reset();
  return found;
}

void verify_checkpoint(comm::Communicator& communicator, const CheckpointFolder& folder,
                       const Disks& disks, CheckpointCandidate& candidate) {
  const Json mine = flaws_found(folder, disks, communicator.rank(), candidate);
  const std::vector<std::string> texts = gather_texts(communicator, json_text(mine));
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

}  // namespace onebit::checkpoint
