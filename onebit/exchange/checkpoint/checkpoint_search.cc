#include "onebit/exchange/checkpoint/checkpoint_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/state_shard.h"
#include "onebit/exchange/comm/collectives.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/base/wording.h"

namespace onebit::checkpoint {
namespace {

namespace files = std::filesystem;

constexpr const char* kGeneration = "generation";

// A checkpoint on a single disk has no generation. The checksum of its contents replaces it.
std::string generation_of(const Json& state) {
  if (state.contains(kGeneration)) return state.at(kGeneration).get<std::string>();
  return fmt::format("crc32c {}", json_text(state.value("crc32c", Json())));
}

std::vector<std::pair<std::string, int64_t>> common_files_in(const Path& folder) {
  std::vector<std::pair<std::string, int64_t>> found = {
      {run_files::kState, static_cast<int64_t>(files::file_size(folder / run_files::kState))}};
  const Path model = folder / run_files::kModel;
  if (!files::is_directory(model)) return {};
  // The model folder of a sentence model has subfolders.
  for (const auto& file : files::recursive_directory_iterator(model)) {
    if (!file.is_regular_file()) continue;
    found.emplace_back(file.path().lexically_relative(folder),
                       static_cast<int64_t>(file.file_size()));
  }
  std::sort(found.begin() + 1, found.end());
  return found;
}

// Error: not a checkpoint, or its state.json does not even identify it.
HeldCheckpoint read_contents(const Path& folder, const std::string& tag, bool published) {
  // The checksum decides about the common files. Even a damaged file states the owners of shards.
  const Path path = folder / run_files::kState;
  const Json state = read_json(path);
  require(state.is_object(), "{}: damaged: it contains no JSON object", path.string());
  HeldCheckpoint held = {.tag = tag,
                         .generation = generation_of(state),
                         .step = state.at("step").get<int64_t>(),
                         .world_size = world_size_of(state, path.string()),
                         .published = published,
                         .shards = {},
                         .common_files = common_files_in(folder),
                         .disks = state.value("disks", Json()),
                         .problem = {}};
  for (int shard = 0; shard < held.world_size; ++shard) {
    if (files::exists(folder / shard_name(shard, held.world_size))) held.shards.push_back(shard);
  }
  return held;
}

// Adds the path, which errors of a missing key or of its type lack.
std::string problem_of(const Path& folder, const std::exception& error) {
  const std::string path = (folder / run_files::kState).string(), text = failure_text(error);
  return text.starts_with(path) ? text : fmt::format("{}: damaged: {}", path, text);
}

}  // namespace

Json DiskContents::to_json() const {
  Json checkpoints = Json::array();
  for (const HeldCheckpoint& one : held) {
    checkpoints.push_back(
        Json::array({one.tag, one.generation, one.step, one.world_size, one.published, one.shards,
                     one.common_files, one.disks, one.problem}));
  }
  return {{"held", checkpoints},
          {"latest", latest},
          {"absent_latest", absent_latest ? Json(*absent_latest) : Json()}};
}

DiskContents DiskContents::from_json(const Json& json) {
  DiskContents contents = {.held = {}, .latest = json.at("latest").get<std::string>()};
  if (const Json& absent = json.at("absent_latest"); !absent.is_null()) {
    contents.absent_latest = absent.get<std::string>();
  }
  for (const Json& one : json.at("held")) {
    HeldCheckpoint held;
    one[0].get_to(held.tag);
    one[1].get_to(held.generation);
    one[2].get_to(held.step);
    one[3].get_to(held.world_size);
    one[4].get_to(held.published);
    one[5].get_to(held.shards);
    one[6].get_to(held.common_files);
    held.disks = one[7];
    one[8].get_to(held.problem);
    contents.held.push_back(std::move(held));
  }
  return contents;
}

DiskContents contents_of_disk(const CheckpointFolder& folder) {
  DiskContents contents;
  std::error_code no_folder;
  for (const auto& item : files::directory_iterator(folder.root(), no_folder)) {
    const std::string name = item.path().filename().string();
    const bool published = !name.ends_with(kPartialSuffix);
    const std::string tag = published ? name : name.substr(0, name.size() - kPartialSuffix.size());
    const bool has_state = files::exists(item.path() / run_files::kState);
    const bool has_lost_it = published && step_of_tag(tag) >= 0 && item.is_directory();
    if (name.ends_with(kReplacedSuffix) || !(has_state || has_lost_it)) continue;
    try {
      contents.held.push_back(read_contents(item.path(), tag, published));
    } catch (const std::exception& error) {
      contents.held.push_back({.tag = tag,
                               .published = published,
                               .shards = {},
                               .disks = {},
                               .problem = problem_of(item.path(), error)});
    }
  }
  const std::optional<std::string> named = folder.tag_in_latest();
  if (named && !folder.holds(*named)) {
    contents.absent_latest = named;
  } else {
    contents.latest = folder.newest();
  }
  return contents;
}

Path folder_of(const CheckpointFolder& folder, const HeldCheckpoint& held) {
  return held.published ? folder.folder(held.tag) : folder.partial_folder(held.tag);
}

std::string flaw_of_shard(const Path& folder, int shard, int world_size) {
  Json state = Json::object();
  try {
    state = read_checkpoint_state(folder);
  } catch (const std::exception&) {
    // A defect of the common files: the shard may be intact.
  }
  try {
    const std::string name = shard_name(shard, world_size);
    formats::SafetensorsFile(folder / name).verify_checksum();
    require_of_checkpoint(state, folder, name);
    return {};
  } catch (const Error& error) {
    return failure_text(error);
  }
}

std::string flaw_of_common_files(const Path& folder, const HeldCheckpoint& held) {
  if (held.common_files.empty()) {
    return fmt::format("{}: does not exist", (folder / run_files::kModel).string());
  }
  try {
    require_of_checkpoint(read_checkpoint_state(folder), folder, model_file_name());
    formats::require_unchanged(folder / run_files::kModel);
    for (const auto& [name, bytes] : held.common_files) {
      if (name.ends_with(".safetensors")) {
        formats::SafetensorsFile(folder / name).verify_checksum();
      }
    }
    return {};
  } catch (const std::exception& error) {
    return failure_text(error);
  }
}

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
  const std::vector<std::string> texts = comm::gather_texts(communicator, mine);
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

}  // namespace onebit::checkpoint
