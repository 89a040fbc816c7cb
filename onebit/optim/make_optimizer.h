#pragma once

#include <memory>

#include "onebit/optim/optimizer.h"
#include "onebit/optim/optimizer_config.h"

namespace onebit::comm {
class Communicator;
}

namespace onebit::optim {

// What an optimizer needs to know of the run.
struct RunFacts {
  int64_t total_steps = 0;      // updates of the whole run, for warnings; 0: not known
  int64_t schedule_warmup = 0;  // Schedule::warmup_updates(): "auto" never freezes before
  // Of the values in a bucket of the compressed exchange, at least (compress/bucket_size.h).
  int64_t bucket_bytes = 4 << 20;
};

// Books the state for `table`, which must be allocated and outlives the optimizer, as does the
// communicator.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig&, const params::Table&,
                                          comm::Communicator&, const RunFacts&);

}  // namespace onebit::optim
