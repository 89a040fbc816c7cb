// What an update of the compressed phase exchanges.
#pragma once

#include <cstdint>

namespace onebit::optim {

struct UpdatePlan {
  bool averages = false;       // its gradients are averaged over ranks, and so is its variance
  bool exchanges = true;       // false: this rank continues with its own gradients
  int64_t updates = 1;         // number of updates whose gradients this exchange sends
  double variance_memory = 1;  // the fraction of the variance that it keeps
};

}  // namespace onebit::optim
