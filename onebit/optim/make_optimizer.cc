#include "onebit/optim/make_optimizer.h"

#include "onebit/optim/adam.h"
#include "onebit/optim/deepspeed_onebit_adam.h"
#include "onebit/optim/onebit_adam.h"

namespace onebit::optim {

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const params::Table& table,
                                          comm::Communicator& communicator, const RunFacts& run) {
  if (config.type == OptimizerType::kAdam) return std::make_unique<Adam>(config, table);
  if (config.parity == Parity::kDeepSpeed) {
    return std::make_unique<DeepSpeedOneBitAdam>(config, table, communicator, run);
  }
  return std::make_unique<OneBitAdam>(config, table, communicator, run);
}

}  // namespace onebit::optim
