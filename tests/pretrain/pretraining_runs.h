// Pre-training runs of the small corpus.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onebit/apps/pretrain/pretraining_task.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/json.h"
#include "onebit/training/training/run_folder.h"
#include "onebit/training/training/training_loop.h"
#include "tests/finetune/metrics_lines.h"
#include "tests/finetune/small_corpus.h"

namespace onebit::pretrain {

inline training::RunSummary run_pretraining(Context& context, const PretrainingOptions& options,
                                            comm::Communicator& communicator) {
  training::check_run_folder(options.output, options.resume);
  PretrainingOptions on_device = options;
  on_device.recipe.values = engine::for_device(options.recipe.values, context.device());
  PretrainingTask task(on_device, communicator);
  return training::run_training(context, task, on_device, communicator);
}

class PretrainingRuns : public testing::Test {
 protected:
  // Options of a run in the folder `name` that trains on `train` and evaluates on `valid`.
  PretrainingOptions options_of(const char* recipe, const std::string& name) const {
    PretrainingOptions options;
    options.recipe.values = parse_json(recipe, "recipe");
    options.recipe.place = "recipe";
    options.data = {{corpus_.train(), 0.0}};
    options.valid = {{"", corpus_.valid()}};
    options.output = corpus_.folder(name);
    options.quiet = true;
    return options;
  }
  static void train(const PretrainingOptions& options, int world = 1) {
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      Context context = Context::cpu(1);
      run_pretraining(context, options, communicator);
    });
  }
  std::vector<double> losses(const std::string& name) const {
    return finetune::losses_in(corpus_.folder(name));
  }

  finetune::SmallCorpus corpus_;
};

}  // namespace onebit::pretrain
