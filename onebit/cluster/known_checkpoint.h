// Which checkpoint a launched run continues from, as far as the launcher knows: by what lies on its
// own machine, what the hosts have answered, and what the run itself has reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/cluster/host_check.h"
#include "onebit/cluster/shell_words.h"

namespace onebit::cluster {

class KnownCheckpoint {
 public:
  // `resume` is --resume as it was given, with its tag if it has one; empty: it was not.
  KnownCheckpoint(Path output, Words resume);

  // What hosts have answered when they were asked of the run's folder.
  void add(const std::vector<CheckedHost>& checked);
  // That all have answered, and none has the checkpoint of --resume TAG; empty: not so.
  Problems absent_tag(const std::vector<CheckedHost>& checked) const;
  // That an attempt has begun to train, and would continue from the checkpoint of `step`; 0: it has
  // made none.
  void add_reported(int64_t step) { reported_step_ = step; }
  bool has_begun() const { return reported_step_ >= 0; }

  // Whether this machine sees the checkpoints of the run, by its folder.
  bool is_here() const { return !newest_here().empty(); }
  // Empty: none is known.
  std::string tag() const;
  // For a message behind "from": "global_step40"; "the beginning", only where there is none.
  std::string words() const;

 private:
  std::string newest_here() const;
  std::string wanted_tag() const { return resume_.size() > 1 ? resume_[1] : ""; }

  Path output_;
  Words resume_;
  std::string on_hosts_;       // the newest of their tags
  bool all_answered_ = false;  // so that without a tag there is none
  int64_t reported_step_ = -1;
};

}  // namespace onebit::cluster
