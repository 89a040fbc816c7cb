#include <fmt/format.h>

#include <memory>

#include "onebit/apps/classify/classify_command.h"
#include "onebit/apps/classify/classify_task.h"
#include "onebit/apps/classify/glue.h"
#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/packed_files.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/record_file_options.h"

namespace onebit::classify {
namespace {

struct Arguments {
  commands::RecipeOptions recipe;
  std::string model, train, dev, glue, data;
};

training::TaskInputs inputs_of(const Arguments& given) {
  training::TaskInputs inputs = {.model = given.model, .train = {}, .dev = {}};
  if (given.glue.empty()) {
    inputs.train = {{given.train, 0.0}};
    if (!given.dev.empty()) inputs.dev = {{"", given.dev}};
    return inputs;
  }
  const Path folder = given.data;
  inputs.train = {{folder / "train.tsv", 0.0}};
  for (const GlueFile& file : classify::glue_task(given.glue).dev) {
    inputs.dev.push_back({file.name, folder / file.file});
  }
  return inputs;
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

int run(Arguments& given) {
  check(given);
  if (!given.glue.empty()) {
    const std::string& name = classify::glue_task(given.glue).name;
    given.recipe.overrides.options.push_back("data.glue=" + name);
  }
  return commands::train_on_ranks(given.recipe, make_classify_task, inputs_of(given));
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
  const commands::KeyOptions keys(command, read_classify_recipe, given->recipe.overrides);
  add_classify_file_options(keys, true);
  finetune::add_skip_bad_records(keys);
  commands::add_recipe_options(command, keys, given->recipe);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::classify
