#include "onebit/training/epochs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace onebit::training {

std::string choose_steps(engine::EngineConfig& config, double epochs, uint64_t samples,
                         int world_size) {
  const engine::BatchSizes batch =
      engine::solve_batch_sizes(config.batch, world_size, config.place);
  const auto wanted = static_cast<int64_t>(std::ceil(epochs * static_cast<double>(samples)));
  config.run.steps = std::max<int64_t>(1, (wanted + batch.train - 1) / batch.train);
  return fmt::format("{} epochs are {} steps", epochs, config.run.steps);
}

}  // namespace onebit::training
