#include <fmt/format.h>

#include <memory>

#include "onebit/cli/model_options.h"
#include "onebit/cli/packed_files.h"
#include "onebit/cli/recipe_options.h"
#include "onebit/cli/squad_command.h"
#include "onebit/cli/usage.h"
#include "onebit/tasks/squad_task.h"

namespace onebit::cli {
namespace {

struct Arguments {
  RecipeOptions recipe;
  std::string model, train, dev;
};

int run(const Arguments& given) {
  tasks::SquadTrainingOptions options;
  options.model = given.model;
  options.train = given.train;
  if (!given.dev.empty()) options.dev = given.dev;
  return train_on_ranks(given.recipe, options,
                        [&](Context& context, comm::Communicator& communicator) {
                          tasks::run_squad_training(context, options, communicator);
                        });
}

}  // namespace

void add_squad_train(CLI::App& squad, Action& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command = squad.add_subcommand(
      "train",
      "Fine-tune a BERT on questions; under mpirun, data parallel on all ranks. Leaves in --output "
      "the best model by F1 as a Hugging Face folder, and its answers to --dev");
  add_pretrained_model_option(*command, given->model);
  command->add_option("--train", given->train, fmt::format("SQuAD file (JSON, {})", kPlainOrPacked))
      ->type_name(kInput)
      ->required();
  command->add_option("--dev", given->dev, "SQuAD file to evaluate on at the end of each epoch")
      ->type_name(kInput);
  add_recipe_options(*command, given->recipe);
  command->callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
