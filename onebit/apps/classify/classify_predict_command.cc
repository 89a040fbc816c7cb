#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "onebit/apps/classify/classify_command.h"
#include "onebit/apps/classify/glue.h"
#include "onebit/apps/classify/prediction_file.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/wording.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/output_files.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::classify {
namespace {

struct Arguments {
  ClassifyModelOptions model;
  std::string input, output, glue, data;
  commands::DeviceOptions device;
};

void predict(Classifier& predictor, const Path& input, const finetune::FileLayout& layout,
             const Path& output, const PredictionFile::Options& options) {
  finetune::ExampleReader reader(input, layout, false);
  PredictionFile file(output, options);
  const int64_t cut_before = predictor.cut();
  predictor.for_each_output(reader, [&](std::span<const float> outputs) { file.add(outputs); });
  file.finish();
  finetune::warn_of_truncation(reader.name(), predictor.cut() - cut_before, file.count());
  if (reader.skipped() > 0) {
    log_warning("{}: {} lines have too few fields; those that are missing were read as empty",
                reader.name(), reader.skipped());
  }
  const bool is_usual = predictor.activation() == usual_activation(options.problem) &&
                        !predictor.model().classifier.score_activation;
  fmt::print("{}: {} predictions{}{}\n", output.string(), file.count(),
             is_usual ? "" : fmt::format(", {}", describe(predictor.activation())),
             options.has_scores ? ", and the outputs as scores" : "");
}

// The names of the model's outputs in the submission. Error: they are not the task's.
std::vector<std::string> labels_for(const GlueTask& task, const Classifier& predictor) {
  const std::vector<std::string>& own = predictor.labels();
  if (task.problem == predictor.problem() && task.problem != Problem::kRegression &&
      are_default_labels(own) && task.labels == classify::numbered_labels(own.size())) {
    report_numbered_labels("GLUE's " + task.name, own);
    return task.labels;
  }
  std::vector<std::string> wanted = task.labels, found = own;
  std::sort(wanted.begin(), wanted.end());
  std::sort(found.begin(), found.end());
  require(task.problem == predictor.problem() && wanted == found,
          "the model predicts {} ({}), GLUE's {} asks for {} ({}): is it a model of this task?",
          listed(own), classify::name_of(predictor.problem()), task.name, listed(task.labels),
          classify::name_of(task.problem));
  return own;
}

// Writes the submission files of a GLUE task into the folder `output`.
void predict_glue(Classifier& predictor, const Arguments& given, PredictionFile::Options options) {
  const GlueTask& task = classify::glue_task(given.glue);
  options.labels = labels_for(task, predictor);
  options.format = PredictionFormat::kGlue;
  make_folder(given.output);
  for (const GlueFile& file : task.test) {
    predict(predictor, Path(given.data) / file.file, task.test_layout(),
            Path(given.output) / file.name, options);
  }
}

void check(const Arguments& given) {
  if (given.glue.empty() && given.input.empty()) {
    throw commands::UsageError("give --input FILE, or --glue NAME --data FOLDER");
  }
  if (!given.glue.empty() && given.data.empty()) {
    throw commands::UsageError("--glue needs --data, the folder of the task's files");
  }
}

int run(Arguments& given) {
  check(given);
  ClassifyConfig config = given.model.config();
  config.layout.left_out = finetune::require_none_left_out(config.layout.left_out);
  PredictionFile::Options options;
  if (given.glue.empty()) {
    options.format = classify::prediction_format_of(given.output);
    commands::require_separate_outputs({given.output}, {given.input}, given.model.model);
  }
  Context context = commands::make_context(given.device, 0, 1);
  Classifier predictor(context, given.model.model, given.model.prediction(config));
  require_used_keys(config, predictor.problem(), predictor.labels().size());
  options.problem = predictor.problem();
  options.labels = predictor.labels();
  options.threshold = config.threshold;
  options.separator = config.label_format.separator;
  options.activation = predictor.activation();
  options.has_scores = predictor.scores_are_outputs();
  if (given.glue.empty()) {
    predict(predictor, given.input, config.layout, given.output, options);
  } else {
    predict_glue(predictor, given, options);
  }
  return commands::kSuccess;
}

}  // namespace

void add_classify_predict(commands::Command classify, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = classify.add_subcommand(
      "predict", "Label the texts of a file of any size, in its order, with probabilities");
  const commands::KeyOptions keys(command, read_classify_recipe, given->model.overrides);
  add_classify_model_options(command, keys, given->model);
  const commands::Option input = command.add_option(
      "--input,-i", given->input,
      fmt::format("Texts: TSV, CSV or JSON lines ({}), or - for standard input, with --format",
                  commands::kPlainOrPacked));
  command
      .add_option("--output,-o", given->output,
                  "predictions.tsv or .jsonl to write, with --glue a folder")
      .required();
  const commands::Option glue =
      add_glue_option(command, given->glue,
                      "A task of GLUE: writes the files that gluebenchmark.com takes for "
                      "the test sets in --data; AX: "
                      "for diagnostic.tsv there, with a model of MNLI");
  command.add_option("--data,-d", given->data, "The folder of --glue's files").needs(glue);
  glue.excludes(input);
  add_classify_file_options(keys, false);
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::classify
