#include "onebit/apps/classify/classify_command.h"

#include "onebit/apps/classify/glue.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/model_options.h"
#include "onebit/training/finetune/record_file_options.h"

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
           "128, or the model's positions if it has fewer");
  keys.add("--prediction-batch,--batch", "data.prediction_batch");
  commands::add_compute_option(command, options.compute);
  keys.add("--threshold", "classify.threshold");
  keys.add("--label-separator", "data.label_separator");
  keys.add_set();
}

ClassifyConfig ClassifyModelOptions::config() const {
  return parse_classify_recipe(finetune::recipe_of_model(model, kClassifyTask, overrides.all()));
}

ClassifyPredictionOptions ClassifyModelOptions::prediction(const ClassifyConfig& config) const {
  ClassifyPredictionOptions options = {
      .max_sequence_length = {}, .batch = config.prediction_batch, .compute = compute};
  if (config.is_length_chosen) options.max_sequence_length = config.max_sequence_length;
  return options;
}

}  // namespace onebit::classify
