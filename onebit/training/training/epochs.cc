#include "onebit/training/training/epochs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/log.h"
#include "onebit/ground/base/wording.h"

namespace onebit::training {

std::string choose_steps(engine::EngineConfig& config, double epochs, uint64_t samples,
                         int world_size) {
  const engine::BatchSizes batch =
      engine::solve_batch_sizes(config.batch, world_size, config.place);
  const auto wanted = static_cast<int64_t>(std::ceil(epochs * static_cast<double>(samples)));
  config.run.steps = std::max<int64_t>(1, (wanted + batch.train - 1) / batch.train);
  if (samples < static_cast<uint64_t>(batch.train)) {
    log_warning(
        "{}: train_batch_size is {}, but there are only {} examples to train on: every step "
        "has all of them, and some of them more than once; reduce train_batch_size",
        config.place, batch.train, samples);
  }
  return fmt::format("{} {} {}", epochs, epochs == 1 ? "epoch is" : "epochs are",
                     counted(config.run.steps, "step"));
}

}  // namespace onebit::training
