#include <memory>

#include "onebit/apps/pretrain/pretrain_command.h"
#include "onebit/apps/pretrain/pretraining_task.h"
#include "onebit/apps/pretrain/store_argument.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/commands/usage.h"

namespace onebit::pretrain {
namespace {

struct Arguments {
  commands::RecipeOptions recipe;
  std::string initialize_from;
  std::vector<std::string> data, valid;
};

int run(const Arguments& given) {
  training::TaskInputs inputs = {.model = given.initialize_from, .train = {}, .dev = {}};
  for (const auto& store : given.data) inputs.train.push_back(parse_weighted_store(store));
  for (const auto& store : given.valid) {
    const HeldOutData held_out = parse_named_store(store, given.valid.size() == 1);
    inputs.dev.push_back({held_out.name, held_out.folder});
  }
  return commands::train_on_ranks(given.recipe, make_pretraining_task, inputs);
}

}  // namespace

void add_pretrain(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      program.add_subcommand("pretrain",
                             "Pre-train an encoder such as BERT, data parallel on the ranks of "
                             "onebit launch, mpirun or srun");
  command
      .add_option("--data,-d", given->data,
                  "Store to train on. Give several with folder=weight to mix them by weight")
      .type_name(kWeightedStore)
      .required();
  command
      .add_option("--valid", given->valid,
                  "Store of held-out text. Give several as name=folder: the first is the domain to "
                  "learn, the others show what is forgotten")
      .type_name(kNamedStore);
  command
      .add_option("--initialize-from", given->initialize_from,
                  "Model, checkpoint or run to start from. Shape, vocabulary and casing come from "
                  "it (for phase 2 of a recipe, give the run of phase 1)")
      .type_name(commands::kInput);
  const commands::KeyOptions keys(command, list_pretraining_keys, given->recipe.overrides);
  commands::add_recipe_options(command, keys, given->recipe);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::pretrain
