#include "onebit/training/finetune/fine_tuning_command.h"

#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/usage.h"

namespace onebit::finetune {

void add_fine_tuning_options(commands::Command command, FineTuningArguments& given,
                             const std::string& train, const std::string& dev) {
  commands::add_pretrained_model_option(command, given.model);
  command.add_option("--train", given.train, train).type_name(commands::kInput).required();
  command.add_option("--dev", given.dev, dev).type_name(commands::kInput);
}

int fine_tune(const FineTuningArguments& given, training::MakeTask make) {
  training::TaskInputs inputs = {.model = given.model, .train = {{given.train, 0.0}}, .dev = {}};
  if (!given.dev.empty()) inputs.dev.push_back({"", given.dev});
  return commands::train_on_ranks(given.recipe, make, inputs);
}

}  // namespace onebit::finetune
