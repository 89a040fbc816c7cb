#include "onebit/apps/classify/classify_command.h"

#include <fmt/format.h>

#include <memory>

#include "onebit/apps/classify/classify_task.h"
#include "onebit/apps/classify/glue.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::classify {

void add_classify(commands::Command program, commands::Action& chosen) {
  const commands::Command classify =
      program.add_subcommand("classify",
                             "Labels or numbers for texts and pairs of texts, GLUE included: "
                             "fine-tune, predict, evaluate");
  classify.require_subcommand();
  add_classify_train(classify, chosen);
  add_classify_predict(classify, chosen);
  add_classify_evaluate(classify, chosen);
}

void add_classify_file_options(const commands::KeyOptions& keys, bool with_label) {
  finetune::add_record_file_options(keys);
  keys.add("--text", "data.text");
  keys.add("--text-pair", "data.text_pair");
  if (with_label) keys.add("--label", "data.label");
}

void report_numbered_labels(const std::string& source, const std::vector<std::string>& labels) {
  log_info("{}: its labels 0 to {} are taken for {} to {}, the default names in the model's config",
           source, labels.size() - 1, labels.front(), labels.back());
}

commands::Option add_glue_option(commands::Command command, std::string& name,
                                 const std::string& about) {
  return command.add_option("--glue", name, about)
      .check(commands::one_of_in_any_case(classify::judged_glue_names()));
}

void add_classify_model_options(commands::Command command, const commands::KeyOptions& keys,
                                ClassifyModelOptions& options) {
  commands::add_fine_tuned_model_option(command, options.model);
  keys.add("--max-sequence-length", "data.max_sequence_length",
           "the run's, or as much as another program's model reads");
  keys.add("--prediction-batch,--batch", "data.prediction_batch");
  commands::add_compute_option(command, options.compute);
  keys.add("--threshold", "classify.threshold");
  keys.add("--label-separator", "data.label_separator");
  keys.add_set();
}

ClassifyConfig ClassifyModelOptions::config() const {
  return parse_classify_recipe(finetune::recipe_of_model(model, kClassifyTask, overrides.all()));
}

ClassifierOptions ClassifyModelOptions::prediction(const ClassifyConfig& config) const {
  ClassifierOptions options = {
      .max_sequence_length = {}, .batch = config.prediction_batch, .compute = compute};
  if (config.is_length_chosen) options.max_sequence_length = config.max_sequence_length;
  return options;
}

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
  const commands::Command command = classify.add_subcommand(
      "train",
      "Fine-tune an encoder on labelled texts, data parallel on the ranks of onebit launch, mpirun "
      "or srun. Leaves in --output the best model by the recipe's metric "
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
