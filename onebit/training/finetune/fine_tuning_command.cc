#include "onebit/training/finetune/fine_tuning_command.h"

#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/usage.h"

namespace onebit::finetune {

void add_fine_tuning_options(commands::Command command, FineTuningArguments& given,
                             const std::string& train, const std::string& dev) {
  commands::add_pretrained_model_option(command, given.model);
  command.add_option("--train", given.train, train).type_name(commands::kInput).required();
  command.add_option("--dev", given.dev, dev).type_name(commands::kInput);
  commands::add_skip_bad_records(command, given.skips_bad_records);
}

int fine_tune(const FineTuningArguments& given,
              training::RunSummary (*train)(Context&, const FineTuningOptions&,
                                            comm::Communicator&),
              const std::function<void(Json& recipe)>& complete) {
  FineTuningOptions options;
  options.model = given.model;
  options.train = given.train;
  options.dev = given.dev;
  return commands::train_on_ranks(
      given.recipe, options,
      [&](Context& context, comm::Communicator& communicator) {
        train(context, options, communicator);
      },
      [&](Json& recipe) {
        commands::set_skip_bad_records(recipe, given.skips_bad_records);
        complete(recipe);
      });
}

}  // namespace onebit::finetune
