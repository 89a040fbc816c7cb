#include "onebit/apps/classify/classify_config.h"

#include <algorithm>

#include "onebit/apps/classify/classify_scores.h"
#include "onebit/math/model/head_names.h"

namespace onebit::classify {
namespace {

// A run's own file has every key, with its default. On the command line the default is meant, too.
void note_given(const Keys& section, const char* name, bool is_default,
                std::vector<std::string>& places) {
  const bool is_given = section.is_changed(name) ||
                        (!is_default && section.has(name) && !section.is_remembered(name));
  if (!is_given) return;
  const std::string place = section.place(name);
  places.push_back(section.is_changed(name)
                       ? "the command line" + place.substr(section.source().size())
                       : place);
}

// Another file than the run's has its own format. A command that names one text reads only that
// one, and looks for the header itself.
void forget_columns(const Keys& section, finetune::FileLayout& layout) {
  if (section.is_remembered("format")) layout.format.reset();
  if (!section.is_changed("text")) return;
  if (section.is_remembered("text_pair")) layout.columns.text_pair.clear();
  if (section.is_remembered("header")) layout.columns.header.reset();
}

void read_columns(Keys& section, ClassifyConfig& config) {
  section.word("glue", config.glue, classify::glue_names(),
               {"a GLUE task, with its published columns, labels and metrics", "none"});
  using finetune::FileFormat;
  finetune::Columns& columns = config.layout.columns;
  section.choice("format", config.layout.format,
                 {{"auto", std::optional<FileFormat>()},
                  {"tsv", FileFormat::kTsv},
                  {"csv", FileFormat::kCsv},
                  {"jsonl", FileFormat::kJsonLines}},
                 "format of the files. auto: by their endings");
  section.text("text", columns.text,
               {"column of the text: its name, its number from 1 or a key of JSON lines",
                "text, sentence1, sentence, premise or question1"});
  section.text(
      "text_pair", columns.text_pair,
      {"column of the second text of a pair", "the other name of a usual pair, if present"});
  section.text("label", columns.label, {"column of the label", "label or labels"});
  section.choice("header", columns.header,
                 {{"auto", std::optional<bool>()}, {"yes", true}, {"no", false}},
                 "whether TSV and CSV files begin with column names. auto: unless all columns are "
                 "given by number");
  section.text("label_separator", config.label_format.separator,
               "separator of the labels in a field, where an example has several");
  section.require(!config.label_format.separator.empty(), "label_separator", "is empty");
  note_given(section, "label_separator", config.label_format.separator == LabelFormat().separator,
             config.keys_of_several);
  finetune::read_bad_records(section, config.layout.left_out);
  forget_columns(section, config.layout);
  // GLUE's layout is only for the files of the run.
  if (config.glue.empty() || section.is_remembered("glue")) return;
  for (const char* name : {"format", "text", "text_pair", "label", "header"}) {
    section.require(!section.has(name), name, "and data.glue are both given; keep one");
    section.leave_out(name);
  }
  const corpus::LeftOut left_out = config.layout.left_out;
  config.layout = classify::glue_task(config.glue).layout();
  config.layout.left_out = left_out;
}

void read_data(Keys section, ClassifyConfig& config) {
  read_columns(section, config);
  finetune::read_sequence_length(
      section, 4,
      "tokens of a sequence, special ones included. Longer texts are truncated, the longer of a "
      "pair first. The default is at most the model's positions",
      config.max_sequence_length, config);
  finetune::read_training_length(section, "sequences of one pass in evaluation", config);
}

std::vector<std::string> every_metric() {
  return metrics::distinct_names({classify::metric_names(Problem::kSingleLabel, 2),
                                  classify::metric_names(Problem::kMultiLabel, 2),
                                  classify::metric_names(Problem::kRegression, 2)});
}

void read_problem(Keys& section, ClassifyConfig& config) {
  Problem& problem = config.label_format.problem;
  const GlueTask* glue = config.glue.empty() ? nullptr : &classify::glue_task(config.glue);
  if (glue != nullptr) problem = glue->problem;
  section.choice("problem_type", problem,
                 {{classify::name_of(Problem::kSingleLabel), Problem::kSingleLabel},
                  {classify::name_of(Problem::kMultiLabel), Problem::kMultiLabel},
                  {classify::name_of(Problem::kRegression), Problem::kRegression}},
                 "one class of several, any number of labels, or a number");
  section.texts(
      "labels", config.labels,
      {"the labels, in the order of the model's outputs", "the labels of the training file"});
  if (glue == nullptr) {
    section.require(config.labels.empty() || problem != Problem::kRegression, "labels",
                    "are given, and a regression has none");
    return;
  }
  section.require(problem == glue->problem, "problem_type", "is {}, GLUE's {} is {}",
                  classify::name_of(problem), glue->name, classify::name_of(glue->problem));
  section.require(config.labels.empty(), "labels", "come from GLUE's {}: leave the key out",
                  glue->name);
  config.labels = glue->labels;
}

void read_classify(Keys section, ClassifyConfig& config) {
  read_problem(section, config);
  const Problem problem = config.label_format.problem;
  section.weights_or_word(
      "class_weights", config.class_weights, config.weighting, {"none", "balanced"}, above(0),
      "loss weights {label: weight}, 1 for other labels. balanced: rarer labels weigh more");
  section.require(config.weighting == "none" || problem != Problem::kRegression, "class_weights",
                  "are given, and a regression has no classes");
  section.text("positive_label", config.positive_label,
               {"the one of two labels whose F1 is \"f1\"", "the second"});
  note_given(section, "positive_label", config.positive_label.empty(), config.keys_of_two);
  section.number(
      "threshold", config.threshold, above(0).below(1),
      "the probability above which a label is present, where an example may have several");
  note_given(section, "threshold", config.threshold == ClassifyConfig().threshold,
             config.keys_of_several);
  if (!config.glue.empty()) config.best_by = classify::glue_task(config.glue).metrics.front();
  section.word("best_by", config.best_by, every_metric(),
               {"the metric that decides which model is kept",
                "accuracy, f1_micro (several labels) or pearson (regression)"});
  const auto names = classify::metric_names(problem, 2);
  section.require(config.best_by.empty() ||
                      std::any_of(names.begin(), names.end(),
                                  [&](const auto& one) { return config.best_by == one.name; }),
                  "best_by", "is {}, which {} does not have", config.best_by,
                  classify::name_of(problem));
}

}  // namespace

ClassifyConfig read_classify_recipe(Keys& recipe) {
  ClassifyConfig config;
  finetune::read_fine_tuning(recipe, kClassifyTask, config);
  finetune::read_classifier_dropout(recipe, config);
  read_data(recipe.section("data", "which columns are read, and how long texts may be"), config);
  read_classify(recipe.section("classify", "the labels, and what decides which model is best"),
                config);
  return config;
}

ClassifyConfig parse_classify_recipe(const Recipe& recipe) {
  return read_whole(recipe, read_classify_recipe);
}

void require_used_keys(const ClassifyConfig& config, Problem problem, size_t labels) {
  if (problem != Problem::kMultiLabel && !config.keys_of_several.empty()) {
    fail(
        "{} is given, and would change nothing: a model for {} gives an example one {}; leave it "
        "out, or train with classify.problem_type {}",
        config.keys_of_several.front(), name_of(problem),
        problem == Problem::kRegression ? "number" : "label", name_of(Problem::kMultiLabel));
  }
  const bool is_one_of_two = problem == Problem::kSingleLabel && labels == 2;
  if (!is_one_of_two && !config.keys_of_two.empty()) {
    fail("{} is given, and would change nothing: it is one of two labels, {}; leave it out",
         config.keys_of_two.front(),
         problem == Problem::kSingleLabel
             ? fmt::format("and the model has {}", labels)
             : fmt::format("and the model is for {}", name_of(problem)));
  }
}

training::RecipeFacts inspect_classify_recipe(const Recipe& recipe) {
  const ClassifyConfig config = parse_classify_recipe(recipe);
  const auto of_task = [config](const engine::BatchSizes&) -> Json {
    return {{"problem_type", classify::name_of(config.label_format.problem)},
            {"epochs", finetune::epochs_shown(config)},
            {"max_sequence_length", config.max_sequence_length}};
  };
  return {.engine = config.engine, .session = config.session, .of_task = of_task};
}

training::ModelDescription classifier_description(const ClassifyConfig& config,
                                                  training::ModelDescription checkpoint) {
  checkpoint = finetune::with_recipe(config, std::move(checkpoint));
  checkpoint.architecture = model::kClassifierArchitecture;
  checkpoint.classifier.problem_type = classify::name_of(config.label_format.problem);
  // Its outputs are what the loss sees, whatever a CrossEncoder applied to them.
  checkpoint.classifier.score_activation.reset();
  return checkpoint;
}

}  // namespace onebit::classify
