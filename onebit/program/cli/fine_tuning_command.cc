#include "onebit/program/cli/fine_tuning_command.h"

#include "onebit/program/cli/model_options.h"
#include "onebit/program/cli/usage.h"

namespace onebit::cli {

void add_fine_tuning_options(Command command, FineTuningArguments& given, const std::string& train,
                             const std::string& dev) {
  add_pretrained_model_option(command, given.model);
  command.add_option("--train", given.train, train).type_name(kInput).required();
  command.add_option("--dev", given.dev, dev).type_name(kInput);
  add_skip_bad_records(command, given.skips_bad_records);
}

int fine_tune(const FineTuningArguments& given,
              training::RunSummary (*train)(Context&, const tasks::FineTuningOptions&,
                                            comm::Communicator&),
              const std::function<void(Json& recipe)>& complete) {
  tasks::FineTuningOptions options;
  options.model = given.model;
  options.train = given.train;
  options.dev = given.dev;
  return train_on_ranks(
      given.recipe, options,
      [&](Context& context, comm::Communicator& communicator) {
        train(context, options, communicator);
      },
      [&](Json& recipe) {
        set_skip_bad_records(recipe, given.skips_bad_records);
        complete(recipe);
      });
}

}  // namespace onebit::cli
