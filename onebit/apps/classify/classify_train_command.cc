#include <fmt/format.h>

#include <memory>

#include "onebit/apps/classify/classify_command.h"
#include "onebit/apps/classify/classify_task.h"
#include "onebit/apps/classify/glue.h"
#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/packed_files.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/commands/usage.h"

namespace onebit::classify {
namespace {

struct Arguments {
  commands::RecipeOptions recipe;
  std::string model, train, dev, glue, data;
  ClassifyFileOptions files;
  bool skips_bad_records = false;
};

// The command line's settings of the files become part of the recipe, which the run stores.
void write_files_into(Json& recipe, const Arguments& given) {
  const ClassifyFileOptions& files = given.files;
  commands::set_text(recipe, "data", "text", files.text);
  commands::set_text(recipe, "data", "text_pair", files.text_pair);
  commands::set_text(recipe, "data", "label", files.label);
  files.write_into(recipe);
  commands::set_skip_bad_records(recipe, given.skips_bad_records);
  if (!given.glue.empty()) {
    commands::set_text(recipe, "data", "glue", classify::glue_task(given.glue).name);
  }
}

void name_files(ClassifyTrainingOptions& options, const Arguments& given) {
  if (given.glue.empty()) {
    options.train = given.train;
    if (!given.dev.empty()) options.dev = {{given.dev, ""}};
    return;
  }
  const Path folder = given.data;
  options.train = folder / "train.tsv";
  for (const GlueFile& file : classify::glue_task(given.glue).dev) {
    options.dev.push_back({folder / file.file, file.name});
  }
}

void check(const Arguments& given) {
  if (given.glue.empty() && given.train.empty()) {
    throw commands::UsageError("give --train FILE, or --glue NAME --data FOLDER");
  }
  if (!given.glue.empty() && given.data.empty()) {
    throw commands::UsageError("--glue needs --data, the folder of the task's files");
  }
  if (given.glue.empty()) return;
  const GlueTask& task = classify::glue_task(given.glue);
  if (!task.trained_as.empty()) {
    throw commands::UsageError(fmt::format(
        "GLUE's {0} has no training set: train with --glue {1}, then `onebit classify evaluate "
        "--glue {0}` and `predict --glue {0}`",
        task.name, task.trained_as));
  }
}

int run(const Arguments& given) {
  check(given);
  ClassifyTrainingOptions options;
  options.model = given.model;
  name_files(options, given);
  return commands::train_on_ranks(
      given.recipe, options,
      [&](Context& context, comm::Communicator& communicator) {
        classify::run_classify_training(context, options, communicator);
      },
      [&](Json& recipe) { write_files_into(recipe, given); });
}

}  // namespace

void add_classify_train(commands::Command classify, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      classify.add_subcommand("train",
                              "Fine-tune a BERT on labelled texts, under mpirun data parallel on "
                              "all ranks. Leaves in --output the best model by the recipe's metric "
                              "as a Hugging Face folder, and its scores on --dev");
  commands::add_pretrained_model_option(command, given->model);
  const commands::Option train = command.add_option(
      "--train", given->train,
      fmt::format("Labelled texts: TSV, CSV or JSON lines ({})", commands::kPlainOrPacked));
  const commands::Option dev = command.add_option(
      "--dev", given->dev,
      "The same, to evaluate on at the end of each epoch and every run.evaluate_every steps");
  const commands::Option glue = add_glue_option(
      command, given->glue, "A task of GLUE: train.tsv and dev.tsv of --data, as published");
  const commands::Option data =
      command.add_option("--data,-d", given->data, "The folder of --glue's files");
  data.needs(glue);
  for (const commands::Option input : {train, dev, data}) input.type_name(commands::kInput);
  glue.excludes(train).excludes(dev);
  add_classify_file_options(command, given->files, true);
  commands::add_skip_bad_records(command, given->skips_bad_records);
  commands::add_recipe_options(command, given->recipe);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::classify
