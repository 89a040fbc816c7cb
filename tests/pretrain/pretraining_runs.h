// Pre-training runs of the small corpus.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onebit/apps/pretrain/pretraining_task.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/json.h"
#include "tests/finetune/metrics_lines.h"
#include "tests/finetune/small_corpus.h"

namespace onebit::pretrain {

class PretrainingRuns : public testing::Test {
 protected:
  // Options of a run in the folder `name` that trains on `train` and evaluates on `valid`.
  PretrainingOptions options_of(const char* recipe, const std::string& name) const {
    PretrainingOptions options;
    options.recipe = parse_json(recipe, "recipe");
    options.recipe_place = "recipe";
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
