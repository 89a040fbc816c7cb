#include <fmt/format.h>

#include <memory>

#include "onebit/cli/model_options.h"
#include "onebit/cli/packed_files.h"
#include "onebit/cli/recipe_options.h"
#include "onebit/cli/tag_command.h"
#include "onebit/cli/usage.h"
#include "onebit/tasks/tag_task.h"

namespace onebit::cli {
namespace {

struct Arguments {
  RecipeOptions recipe;
  std::string model, train, dev;
  TagFileOptions files;
};

// What the command line says of the files becomes part of the recipe, which the run stores.
void write_files_into(Json& recipe, const TagFileOptions& files) {
  if (files.format != "auto") set_text(recipe, "data", "format", files.format);
  set_text(recipe, "data", "tokens", files.tokens);
  set_text(recipe, "data", "tags", files.tags);
  set_text(recipe, "data", "text", files.text);
  set_text(recipe, "data", "entities", files.entities);
  set_text(recipe, "tag", "scheme", files.scheme);
}

int run(const Arguments& given) {
  tasks::TagTrainingOptions options;
  options.model = given.model;
  options.train = given.train;
  options.dev = given.dev;
  return train_on_ranks(
      given.recipe, options,
      [&](Context& context, comm::Communicator& communicator) {
        tasks::run_tag_training(context, options, communicator);
      },
      [&](Json& recipe) { write_files_into(recipe, given.files); });
}

}  // namespace

void add_tag_train(CLI::App& tag, Action& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command = tag.add_subcommand(
      "train",
      "Fine-tune a BERT on tagged sentences; under mpirun, data parallel on all ranks. Leaves in "
      "--output the best model by the recipe's metric as a Hugging Face folder, and its scores on "
      "--dev");
  add_pretrained_model_option(*command, given->model);
  command
      ->add_option(
          "--train", given->train,
          fmt::format("Tagged sentences: CoNLL, CoNLL-U or JSON lines ({})", kPlainOrPacked))
      ->type_name(kInput)
      ->required();
  command
      ->add_option(
          "--dev", given->dev,
          "The same, to evaluate on at the end of each epoch and every run.evaluate_every steps")
      ->type_name(kInput);
  add_tag_file_options(*command, given->files, true);
  add_recipe_options(*command, given->recipe);
  command->callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
