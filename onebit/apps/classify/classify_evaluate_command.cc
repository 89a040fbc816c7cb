#include <fmt/format.h>

#include <memory>

#include "onebit/apps/classify/classify_command.h"
#include "onebit/apps/classify/classify_scores.h"
#include "onebit/apps/classify/glue.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/output_files.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::classify {
namespace {

struct Arguments {
  ClassifyModelOptions model;
  std::string data, output, glue;
  bool json = false;
  commands::DeviceOptions device;
};

struct Judged {
  Path path;
  Scores scores;
};

std::vector<std::string> labels_of(const finetune::Examples& examples, const LabelFormat& format,
                                   const Classifier& predictor) {
  std::vector<std::string> labels = classify::labels_in_file(examples, format, predictor.labels());
  if (labels != predictor.labels()) report_numbered_labels(examples.source, predictor.labels());
  return labels;
}

Judged evaluate(Classifier& predictor, const Path& path, const finetune::FileLayout& layout,
                const ClassifyConfig& config) {
  const LabelFormat format = {.problem = predictor.problem(),
                              .separator = config.label_format.separator,
                              .known = predictor.labels()};
  const finetune::Examples examples = classify::read_labelled(path, layout, format);
  const std::vector<std::string> labels = labels_of(examples, format, predictor);
  const Targets targets = classify::targets_of(examples, format, labels);
  ScoreOptions score = {.threshold = config.threshold};
  if (!config.positive_label.empty()) {
    score.positive =
        classify::index_of_label(labels, config.positive_label, "classify.positive_label");
  }
  const int64_t cut_before = predictor.cut();
  std::vector<float> outputs = predictor.outputs(examples.all, examples.has_pairs);
  if (format.problem == Problem::kRegression) {
    const std::vector<double> values = classify::activated(predictor.activation(), outputs);
    outputs.assign(values.begin(), values.end());
  }
  finetune::warn_of_truncation(examples.source, predictor.cut() - cut_before,
                               static_cast<int64_t>(examples.all.size()));
  if (examples.skipped > 0) {
    log_warning("{}: {} lines have too few fields and were skipped", examples.source,
                examples.skipped);
  }
  if (!examples.left_out.empty()) log_warning("{}", examples.left_out);
  return {path, classify::score(targets, labels, outputs, score)};
}

Json json_of(const std::vector<Judged>& judged) {
  Json files = Json::array();
  for (const Judged& one : judged) {
    Json scores = {{"file", one.path.string()}};
    scores.update(classify::json_of(one.scores));
    files.push_back(std::move(scores));
  }
  return files.size() == 1 ? files[0] : files;
}

int run(Arguments& given) {
  const ClassifyConfig config = given.model.config();
  if (!given.output.empty() && given.glue.empty()) {
    commands::require_separate_outputs({given.output}, {given.data}, given.model.model);
  }
  Context context = commands::make_context(given.device, 0, 1);
  Classifier predictor(context, given.model.model, given.model.prediction(config));
  require_used_keys(config, predictor.problem(), predictor.labels().size());
  std::vector<Judged> judged;
  if (given.glue.empty()) {
    judged.push_back(evaluate(predictor, given.data, config.layout, config));
  } else {
    const GlueTask& task = classify::glue_task(given.glue);
    for (const GlueFile& file : task.dev) {
      judged.push_back(evaluate(predictor, Path(given.data) / file.file, task.layout(), config));
    }
  }
  const Json json = json_of(judged);
  if (!given.output.empty()) write_file_atomically(given.output, json_text(json, 2) + "\n");
  if (given.json) {
    fmt::print("{}\n", json_text(json));
    return commands::kSuccess;
  }
  for (const Judged& one : judged) {
    if (judged.size() > 1) fmt::print("{}\n\n", one.path.string());
    fmt::print("{}{}", classify::text_of(one.scores), judged.size() > 1 ? "\n" : "");
  }
  return commands::kSuccess;
}

}  // namespace

void add_classify_evaluate(commands::Command classify, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      classify.add_subcommand("evaluate",
                              "Judge a model on labelled texts: accuracy, F1, "
                              "Matthews, Pearson, Spearman, confusion matrix");
  const commands::KeyOptions keys(command, read_classify_recipe, given->model.overrides);
  add_classify_model_options(command, keys, given->model);
  command
      .add_option("--data,-d", given->data,
                  fmt::format("Labelled texts: TSV, CSV or JSON lines ({}), or with --glue the "
                              "folder of the task's files",
                              commands::kPlainOrPacked))
      .required();
  add_glue_option(
      command, given->glue,
      "A task of GLUE: its development sets in --data; AX: diagnostic-full.tsv there, for "
      "a model of MNLI");
  keys.add("--positive-label", "classify.positive_label");
  command.add_option("--output,-o", given->output, "Also write the figures as JSON");
  command.add_flag("--json", given->json, "Print one line of JSON instead of tables");
  finetune::add_skip_bad_records(keys);
  add_classify_file_options(keys, true);
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::classify
