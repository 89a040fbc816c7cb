#include <memory>

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

void set_text(Json& recipe, const char* section, const char* key, const std::string& value) {
  if (value.empty() || value == "auto") return;
  if (recipe[section].is_null()) recipe[section] = Json::object();
  recipe[section][key] = value;
}

// What the command line says of the files becomes part of the recipe, which the run stores.
void write_files_into(Json& recipe, const TagFileOptions& files) {
  set_text(recipe, "data", "format", files.format);
  set_text(recipe, "data", "tokens", files.tokens);
  set_text(recipe, "data", "tags", files.tags);
  set_text(recipe, "data", "text", files.text);
  set_text(recipe, "data", "entities", files.entities);
  set_text(recipe, "tag", "scheme", files.scheme);
}

int run(const Arguments& given) {
  tasks::TagTrainingOptions options;
  given.recipe.apply_to(options);
  options.model = given.model;
  options.train = given.train;
  options.dev = given.dev;
  return run_on_ranks(
      given.recipe.device,
      [&] {
        options.recipe = given.recipe.load();
        write_files_into(options.recipe, given.files);
        return engine::requested_transport(options.recipe, options.recipe_place);
      },
      [&](Context& context, comm::Communicator& communicator) {
        tasks::run_tag_training(context, options, communicator);
      });
}

}  // namespace

void add_tag_train(CLI::App& tag, Action& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command = tag.add_subcommand(
      "train",
      "Fine-tune a BERT on tagged sentences; under mpirun, data parallel on all ranks. Leaves in "
      "--output the best model by the recipe's metric as a Hugging Face folder, and its scores on "
      "--dev");
  command
      ->add_option("--model,-m", given->model,
                   "Pre-trained BERT: model folder, checkpoint or run (onebit convert makes a "
                   "folder of any other checkpoint)")
      ->type_name(kInput)
      ->required();
  command
      ->add_option("--train", given->train,
                   "Tagged sentences: CoNLL, CoNLL-U or JSON lines (plain or packed: .gz, .xz, "
                   ".zst, .bz2, .lz4)")
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
