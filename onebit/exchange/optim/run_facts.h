// What an optimizer knows about its run.
#pragma once

#include <cstdint>

namespace onebit::optim {

struct RunFacts {
  int64_t total_steps = 0;      // updates of the whole run, for warnings. 0: not known
  int64_t schedule_warmup = 0;  // Schedule::warmup_updates(): "auto" never freezes before
  // The minimum size of the values in a bucket of the compressed exchange (compress/bucket_size.h).
  int64_t bucket_bytes = 4 << 20;
  // Where a resumed run continues: completed updates, and whether the compressed phase has begun.
  int64_t completed_steps = 0;
  bool compressed = false;
  // The compressed exchange is between the nodes of the communicator (topology.h).
  bool two_levels = false;
};

}  // namespace onebit::optim
