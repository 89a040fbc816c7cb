#include "onebit/training/costs/run_forecast.h"

namespace onebit::costs {

double seconds_of(const optim::UpdateCounts& updates, const StepForecast& step) {
  const double dense = step.dense.step_seconds, compressed = step.compressed.step_seconds;
  const double local = step.local.step_seconds;
  return static_cast<double>(updates.dense) * dense +
         static_cast<double>(updates.compressed) * compressed +
         static_cast<double>(updates.both) * (dense + compressed - local) +
         static_cast<double>(updates.local) * local;
}

RunForecast forecast_run(const optim::OptimizerRecipe& optimizer, const optim::RunFacts& run,
                         const StepForecast& step, int world_size, int64_t from, int64_t to) {
  RunForecast forecast;
  if (world_size == 1) {
    forecast.updates.dense = to - from;
  } else {
    const optim::UpdateCounts before = optimizer.count_updates(run, from);
    const optim::UpdateCounts all = optimizer.count_updates(run, to);
    forecast.updates = {.dense = all.dense - before.dense,
                        .compressed = all.compressed - before.compressed,
                        .both = all.both - before.both,
                        .local = all.local - before.local};
  }
  forecast.seconds = seconds_of(forecast.updates, step);
  return forecast;
}

}  // namespace onebit::costs
