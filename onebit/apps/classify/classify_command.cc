#include "onebit/apps/classify/classify_command.h"

#include "onebit/apps/classify/glue.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/model_options.h"

namespace onebit::classify {
void add_classify(commands::Command program, commands::Action& chosen) {
  const commands::Command classify = program.add_subcommand(
      "classify",
      "Labels or numbers for texts and pairs of texts: fine-tune, predict, evaluate; GLUE");
  classify.require_subcommand();
  add_classify_train(classify, chosen);
  add_classify_predict(classify, chosen);
  add_classify_evaluate(classify, chosen);
}

void add_classify_file_options(commands::Command command, ClassifyFileOptions& options,
                               bool with_label) {
  finetune::add_record_file_options(command, options);
  command.add_option("--text", options.text,
                     "Column of the text: its name, its number from 1, or a key of JSON lines; "
                     "default: text, sentence1, sentence, premise or question1");
  command.add_option(
      "--text-pair", options.text_pair,
      "Column of the second text; default: the other name of a usual pair, if present");
  if (with_label) {
    command.add_option("--label", options.label, "Column of the label; default: label or labels");
  }
}

void ClassifyFileOptions::apply(finetune::FileLayout& layout) const {
  // If the command line names only one text, the recipe's column of second texts does not apply.
  if (!text.empty() && text_pair.empty()) layout.columns.text_pair.clear();
  if (!text.empty()) layout.columns.header.reset();
  finetune::replace_if_given(layout.columns.text, text);
  finetune::replace_if_given(layout.columns.text_pair, text_pair);
  finetune::replace_if_given(layout.columns.label, label);
  if (header) layout.columns.header = header;
  if (const auto chosen = chosen_format()) layout.format = chosen;
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

void add_classify_model_options(commands::Command command, ClassifyModelOptions& options) {
  commands::add_fine_tuned_model_option(command, options.model);
  command
      .add_option("--max-sequence-length", options.max_sequence_length,
                  "Tokens of a sequence, special ones included; longer texts are cut; default: the "
                  "run's, else 128, or the model's positions if it has fewer")
      .check(commands::at_least(4));
  commands::add_batch_option(command, options.prediction.batch);
  commands::add_compute_option(command, options.prediction.compute);
  command
      .add_option("--threshold", options.threshold,
                  "The probability above which a label is present, if there may be several; "
                  "default: the run's, else 0.5")
      .check(commands::between(0.0, 1.0));
}

void ClassifyModelOptions::settle(const ClassifyFileOptions& files) {
  if (const auto run = classify::classify_config_of_run(model)) {
    // The columns of a GLUE run are those of GLUE's own files.
    if (run->glue.empty()) layout.columns = run->layout.columns;
    if (run->is_length_chosen) prediction.max_sequence_length = run->max_sequence_length;
    separator = run->label_format.separator;
    decided_threshold = run->threshold;
    if (positive_label.empty()) positive_label = run->positive_label;
  }
  files.apply(layout);
  if (max_sequence_length) prediction.max_sequence_length = max_sequence_length;
  if (threshold) decided_threshold = *threshold;
  if (label_separator) separator = *label_separator;
}

}  // namespace onebit::classify
