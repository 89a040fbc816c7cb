// Trains a task on ranks that a test has made.
#pragma once

#include "onebit/exchange/engine/config.h"
#include "onebit/training/training/run_folder.h"
#include "onebit/training/training/training_loop.h"

namespace onebit::finetune {

template <typename Task, typename Options>
training::RunSummary run_fine_tuning(Context& context, const Options& options,
                                     comm::Communicator& communicator) {
  training::check_run_folder(options.output, options.resume);
  Options on_device = options;
  on_device.recipe.values = engine::for_device(options.recipe.values, context.device());
  Task task(context, on_device, communicator);
  return training::run_training(context, task, on_device, communicator);
}

}  // namespace onebit::finetune
