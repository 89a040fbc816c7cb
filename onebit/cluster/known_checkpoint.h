// Which checkpoint a launched run continues from, as far as the launcher knows: by what lies on its
// own machine and what the run itself has reported.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/base/file.h"
#include "onebit/cluster/shell_words.h"

namespace onebit::cluster {

class KnownCheckpoint {
 public:
  // `resume` is --resume as it was given, with its tag if it has one; empty: it was not.
  KnownCheckpoint(Path output, Words resume);

  // That an attempt has begun to train, and would continue from the checkpoint of `step`; 0: it has
  // made none.
  void add_reported(int64_t step) { reported_step_ = step; }
  bool has_begun() const { return reported_step_ >= 0; }

  // Empty: none is known.
  std::string tag() const;

 private:
  std::string newest_here() const;

  Path output_;
  Words resume_;
  int64_t reported_step_ = -1;
};

}  // namespace onebit::cluster
