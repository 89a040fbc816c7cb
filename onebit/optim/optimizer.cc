#include "onebit/optim/optimizer.h"

namespace onebit::optim {

std::string_view name_of(Phase phase) {
  return phase == Phase::kWarmup ? "warmup" : "compressed";
}

}  // namespace onebit::optim
