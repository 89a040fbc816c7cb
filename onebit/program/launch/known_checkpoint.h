// The checkpoint that a launched run continues from, as far as the launcher knows it from its own
// machine, the hosts' answers and the run's reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/program/cluster/host_check.h"
#include "onebit/program/cluster/host_command_line.h"

namespace onebit::launch {

class KnownCheckpoint {
 public:
  // `resume` is --resume as given, with its tag if it has one. Empty: not given.
  KnownCheckpoint(Path output, cluster::Words resume);

  // Takes the hosts' answers about the run's folder.
  void add(const std::vector<cluster::CheckedHost>& checked);
  // A problem if all hosts have answered and none has the checkpoint of --resume TAG. Otherwise
  // empty.
  cluster::Problems absent_tag(const std::vector<cluster::CheckedHost>& checked) const;
  // Notes that an attempt has begun to train and would continue from the checkpoint of `step`. 0:
  // there is no checkpoint yet.
  void add_reported(int64_t step) { reported_step_ = step; }
  bool has_begun() const { return reported_step_ >= 0; }

  // Whether this machine sees checkpoints in the run's folder.
  bool is_here() const { return !newest_here().empty(); }
  // The checkpoint's tag. Empty: none is known.
  std::string tag() const;
  // Text that follows "from" in a message: "global_step40", or "the beginning" only if there is
  // surely no checkpoint.
  std::string words() const;

 private:
  std::string newest_here() const;
  std::string wanted_tag() const { return resume_.size() > 1 ? resume_[1] : ""; }

  Path output_;
  cluster::Words resume_;
  std::string on_hosts_;       // the newest tag that hosts have reported
  bool all_answered_ = false;  // so an empty tag means that there is none
  int64_t reported_step_ = -1;
};

}  // namespace onebit::launch
