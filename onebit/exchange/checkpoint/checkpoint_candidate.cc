#include "onebit/exchange/checkpoint/checkpoint_candidate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

// The same on all disks that hold any part of the checkpoint.
const Json& disks_of(const CheckpointCandidate& candidate) {
  return (*std::find_if(candidate.on.begin(), candidate.on.end(),
                        [](const auto* held) { return held != nullptr; }))
      ->disks;
}

// Which disks kept these shards.
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

}  // namespace onebit::checkpoint
