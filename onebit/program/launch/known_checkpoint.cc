#include "onebit/program/launch/known_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/ground/base/wording.h"

namespace onebit::launch {
namespace {

const std::string& newer(const std::string& one, const std::string& other) {
  return checkpoint::step_of_tag(one) >= checkpoint::step_of_tag(other) && !one.empty() ? one
                                                                                        : other;
}

bool has_answered(const cluster::CheckedHost& host) {
  return host.facts && host.facts->output && host.facts->output->error.empty();
}

}  // namespace

KnownCheckpoint::KnownCheckpoint(Path output, cluster::Words resume)
    : output_(std::move(output)), resume_(std::move(resume)) {}

void KnownCheckpoint::add(const std::vector<cluster::CheckedHost>& checked) {
  for (const cluster::CheckedHost& host : checked) {
    if (!host.facts || !host.facts->output) continue;
    on_hosts_ = newer(on_hosts_, host.facts->output->checkpoint);
  }
  if (!checked.empty()) all_answered_ = std::ranges::all_of(checked, has_answered);
}

cluster::Problems KnownCheckpoint::absent_tag(
    const std::vector<cluster::CheckedHost>& checked) const {
  const std::string tag = wanted_tag();
  if (tag.empty() || checked.empty() || !std::ranges::all_of(checked, has_answered)) return {};
  std::set<std::pair<int64_t, std::string>> there;  // ordered by step
  for (const cluster::CheckedHost& host : checked) {
    for (const std::string& one : host.facts->output->checkpoints) {
      there.emplace(checkpoint::step_of_tag(one), one);
    }
  }
  std::vector<std::string> tags;
  for (const auto& [step, one] : there) tags.push_back(one);
  if (std::ranges::find(tags, tag) != tags.end()) return {};
  return {{"--resume " + tag,
           fmt::format("{}: no host holds this checkpoint; {}", output_.string(),
                       tags.empty() ? "no host holds any checkpoint"
                                    : fmt::format("there {} {}", tags.size() == 1 ? "is" : "are",
                                                  listed(tags)))}};
}

std::string KnownCheckpoint::newest_here() const {
  return checkpoint::CheckpointFolder(output_).newest();
}

std::string KnownCheckpoint::tag() const {
  // The run's report counts if it is newer than the checkpoints on this machine, which need not see
  // the disk of the run's folder.
  if (has_begun()) {
    return reported_step_ == 0 ? newest_here()
                               : newer(newest_here(), checkpoint::tag_of_step(reported_step_));
  }
  const std::string wanted = wanted_tag();
  return wanted.empty() ? newer(newest_here(), on_hosts_) : wanted;
}

std::string KnownCheckpoint::words() const {
  const std::string known = tag();
  if (!known.empty()) return known;
  return has_begun() || all_answered_ ? "the beginning"
                                      : "its newest checkpoint, if a host has one";
}

}  // namespace onebit::launch
