#include <memory>

#include "onebit/classify/glue.h"
#include "onebit/cli/classify_command.h"
#include "onebit/cli/recipe_options.h"
#include "onebit/cli/usage.h"
#include "onebit/tasks/classify_task.h"

namespace onebit::cli {
namespace {

struct Arguments {
  RecipeOptions recipe;
  std::string model, train, dev, glue, data;
  ClassifyFileOptions files;
};

void set_text(Json& section, const char* key, const std::string& value) {
  if (!value.empty()) section[key] = value;
}

// What the command line says of the files becomes part of the recipe, which the run stores.
void write_files_into(Json& recipe, const Arguments& given) {
  Json& data = recipe["data"];
  if (data.is_null()) data = Json::object();
  set_text(data, "text", given.files.text);
  set_text(data, "text_pair", given.files.text_pair);
  set_text(data, "label", given.files.label);
  if (given.files.format != "auto") data["format"] = given.files.format;
  if (given.files.header) data["header"] = *given.files.header ? "yes" : "no";
  if (!given.glue.empty()) data["glue"] = classify::glue_task(given.glue).name;
}

void name_files(tasks::ClassifyTrainingOptions& options, const Arguments& given) {
  if (given.glue.empty()) {
    options.train = given.train;
    if (!given.dev.empty()) options.dev = {{given.dev, ""}};
    return;
  }
  const Path folder = given.data;
  options.train = folder / "train.tsv";
  for (const classify::GlueFile& file : classify::glue_task(given.glue).dev) {
    options.dev.push_back({folder / file.file, file.name});
  }
}

void check(const Arguments& given) {
  if (given.glue.empty() && given.train.empty()) {
    throw UsageError("give --train FILE, or --glue NAME --data FOLDER");
  }
  if (!given.glue.empty() && given.data.empty()) {
    throw UsageError("--glue needs --data, the folder of the task's files");
  }
}

int run(const Arguments& given) {
  check(given);
  tasks::ClassifyTrainingOptions options;
  given.recipe.apply_to(options);
  options.model = given.model;
  name_files(options, given);
  return run_on_ranks(
      given.recipe.device,
      [&] {
        options.recipe = given.recipe.load();
        write_files_into(options.recipe, given);
        return engine::requested_transport(options.recipe, options.recipe_place);
      },
      [&](Context& context, comm::Communicator& communicator) {
        tasks::run_classify_training(context, options, communicator);
      });
}

}  // namespace

void add_classify_train(CLI::App& classify, Action& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command = classify.add_subcommand(
      "train",
      "Fine-tune a BERT on labelled texts; under mpirun, data parallel on all ranks. Leaves in "
      "--output the best model by the recipe's metric as a Hugging Face folder, and its scores on "
      "--dev");
  command
      ->add_option("--model,-m", given->model,
                   "Pre-trained BERT: model folder, checkpoint or run (onebit convert makes a "
                   "folder of any other checkpoint)")
      ->type_name(kInput)
      ->required();
  auto* train = command->add_option(
      "--train", given->train,
      "Labelled texts: TSV, CSV or JSON lines (plain or packed: .gz, .xz, .zst, .bz2, .lz4)");
  auto* dev = command->add_option(
      "--dev", given->dev,
      "The same, to evaluate on at the end of each epoch and every run.evaluate_every steps");
  auto* glue = add_glue_option(*command, given->glue,
                               "A task of GLUE: train.tsv and dev.tsv of --data, as published");
  auto* data = command->add_option("--data,-d", given->data, "The folder of --glue's files");
  data->needs(glue);
  for (CLI::Option* input : {train, dev, data}) input->type_name(kInput);
  glue->excludes(train)->excludes(dev);
  add_classify_file_options(*command, given->files, true);
  add_recipe_options(*command, given->recipe);
  command->callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
