#include "onebit/cluster/known_checkpoint.h"

#include <utility>

#include "onebit/base/error.h"
#include "onebit/base/log.h"
#include "onebit/engine/checkpoint_folder.h"

namespace onebit::cluster {
namespace {

const std::string& newer(const std::string& one, const std::string& other) {
  return engine::step_of_tag(one) >= engine::step_of_tag(other) && !one.empty() ? one : other;
}

}  // namespace

KnownCheckpoint::KnownCheckpoint(Path output, Words resume)
    : output_(std::move(output)), resume_(std::move(resume)) {}

std::string KnownCheckpoint::newest_here() const {
  try {
    return engine::CheckpointFolder(output_).latest().value_or("");
  } catch (const Error& error) {
    // The ranks say so themselves, and other disks may know better.
    log_warning("{}", error.what());
    return "";
  }
}

std::string KnownCheckpoint::tag() const {
  // What the run has reported counts where it is newer than what lies here: its folder need not be
  // on a disk that this machine sees.
  if (has_begun()) {
    return reported_step_ == 0 ? newest_here()
                               : newer(newest_here(), engine::tag_of_step(reported_step_));
  }
  return resume_.size() > 1 ? resume_[1] : newest_here();
}

}  // namespace onebit::cluster
