#include "onebit/training/finetune/fine_tuning_options.h"

#include "onebit/ground/base/error.h"

namespace onebit::finetune {

void require_one_file(const training::TaskInputs& inputs) {
  require(!inputs.model.empty(), "a fine-tuning starts from a model: give one");
  require(inputs.train.size() == 1, "a fine-tuning reads one training file, {} are given",
          inputs.train.size());
}

FineTuningOptions options_of(const training::RunOptions& run, const training::TaskInputs& inputs) {
  require_one_file(inputs);
  require(inputs.dev.size() <= 1, "this task evaluates one file during the run, {} are given",
          inputs.dev.size());
  return {run, inputs.model, inputs.train.front().first,
          inputs.dev.empty() ? Path() : inputs.dev.front().path};
}

}  // namespace onebit::finetune
