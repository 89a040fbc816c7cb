#include "onebit/apps/classify/glue.h"

#include <algorithm>
#include <cctype>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/wording.h"

namespace onebit::classify {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& one : result) one = static_cast<char>(std::tolower(static_cast<unsigned char>(one)));
  return result;
}

finetune::Columns pair(const char* text, const char* text_pair, const char* label) {
  return {.text = text, .text_pair = text_pair, .label = label, .header = true};
}

finetune::Columns single(const char* text, const char* label, bool header = true) {
  return {.text = text, .text_pair = "", .label = label, .header = header};
}

const std::vector<std::string> kBinary = {"0", "1"};
const std::vector<std::string> kEntailment = {"entailment", "not_entailment"};

using P = Problem;

std::vector<GlueFile> one_dev() {
  return {{"dev.tsv", ""}};
}

std::vector<GlueFile> one_test(const char* submission) {
  return {{"test.tsv", submission}};
}

const std::vector<GlueTask> kTasks = {
    // train.tsv and dev.tsv have no header: source, label, the author's mark, sentence.
    {"CoLA",
     P::kSingleLabel,
     kBinary,
     single("4", "2", false),
     single("sentence", ""),
     {"matthews"},
     one_dev(),
     one_test("CoLA.tsv")},
    {"SST-2",
     P::kSingleLabel,
     kBinary,
     single("sentence", "label"),
     single("sentence", ""),
     {"accuracy"},
     one_dev(),
     one_test("SST-2.tsv")},
    {"MRPC",
     P::kSingleLabel,
     kBinary,
     pair("#1 String", "#2 String", "Quality"),
     pair("#1 String", "#2 String", ""),
     {"f1", "accuracy"},
     one_dev(),
     one_test("MRPC.tsv")},
    {"QQP",
     P::kSingleLabel,
     kBinary,
     pair("question1", "question2", "is_duplicate"),
     pair("question1", "question2", ""),
     {"f1", "accuracy"},
     one_dev(),
     one_test("QQP.tsv")},
    {"STS-B",
     P::kRegression,
     {"LABEL_0"},
     pair("sentence1", "sentence2", "score"),
     pair("sentence1", "sentence2", ""),
     {"pearson", "spearman"},
     one_dev(),
     one_test("STS-B.tsv")},
    {"MNLI",
     P::kSingleLabel,
     {"entailment", "neutral", "contradiction"},
     pair("sentence1", "sentence2", "gold_label"),
     pair("sentence1", "sentence2", ""),
     {"accuracy"},
     {{"dev_matched.tsv", "matched"}, {"dev_mismatched.tsv", "mismatched"}},
     {{"test_matched.tsv", "MNLI-m.tsv"}, {"test_mismatched.tsv", "MNLI-mm.tsv"}}},
    {"QNLI",
     P::kSingleLabel,
     kEntailment,
     pair("question", "sentence", "label"),
     pair("question", "sentence", ""),
     {"accuracy"},
     one_dev(),
     one_test("QNLI.tsv")},
    {"RTE",
     P::kSingleLabel,
     kEntailment,
     pair("sentence1", "sentence2", "label"),
     pair("sentence1", "sentence2", ""),
     {"accuracy"},
     one_dev(),
     one_test("RTE.tsv")},
    {"WNLI",
     P::kSingleLabel,
     kBinary,
     pair("sentence1", "sentence2", "label"),
     pair("sentence1", "sentence2", ""),
     {"accuracy"},
     one_dev(),
     one_test("WNLI.tsv")},
};

// Uses MNLI's problem. Its labels are published separately from the texts of the submission.
const GlueTask kDiagnostic = {"AX",
                              P::kSingleLabel,
                              {"entailment", "neutral", "contradiction"},
                              pair("Premise", "Hypothesis", "Label"),
                              pair("sentence1", "sentence2", ""),
                              {"matthews"},
                              {{"diagnostic-full.tsv", ""}},
                              {{"diagnostic.tsv", "AX.tsv"}},
                              "MNLI"};

}  // namespace

finetune::FileLayout GlueTask::layout() const {
  return {.format = finetune::FileFormat::kTsv,
          .columns = columns,
          .skip_short = true,
          .column_fix = fmt::format("are these the files of GLUE's {}?", name)};
}

finetune::FileLayout GlueTask::test_layout() const {
  finetune::FileLayout result = layout();
  result.columns = test_columns;
  // Every line of a test set has its place in the submission.
  result.skip_short = false;
  result.fill_short = true;
  return result;
}

std::span<const GlueTask> glue_tasks() {
  return kTasks;
}

std::vector<std::string> glue_names() {
  std::vector<std::string> names;
  for (const GlueTask& task : kTasks) names.push_back(task.name);
  return names;
}

std::vector<std::string> judged_glue_names() {
  std::vector<std::string> names = glue_names();
  names.push_back(kDiagnostic.name);
  return names;
}

const GlueTask& glue_task(std::string_view name) {
  for (const GlueTask& task : kTasks) {
    if (lower(task.name) == lower(name)) return task;
  }
  if (lower(kDiagnostic.name) == lower(name)) return kDiagnostic;
  const std::vector<std::string> known = judged_glue_names();
  const std::string near = nearest_word(name, known);
  fail("GLUE has no task \"{}\"{}; it has {}", name,
       near.empty() ? "" : fmt::format(" (did you mean {}?)", near), fmt::join(known, ", "));
}

}  // namespace onebit::classify
