#include "onebit/optim/optimizer.h"

namespace onebit::optim {

std::string_view name_of(Phase phase) {
  constexpr std::string_view kNames[] = {"dense", "warmup", "compressed"};
  return kNames[static_cast<size_t>(phase)];
}

}  // namespace onebit::optim
