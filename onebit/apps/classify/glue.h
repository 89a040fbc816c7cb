// The nine tasks of GLUE (Wang et al. 2019, arXiv 1804.07461) and its diagnostic set, AX, as
// published: files, columns, labels, metrics, and the files that gluebenchmark.com accepts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/apps/classify/labels.h"
#include "onebit/training/finetune/example_reader.h"

namespace onebit::classify {

struct GlueFile {
  std::string file;  // in the task's folder
  // For a development set, the prefix of its metrics ("mismatched_accuracy"), empty if it selects
  // the best model. For a test set, the submission's file ("MNLI-mm.tsv").
  std::string name;
};

struct GlueTask {
  std::string name;
  Problem problem = Problem::kSingleLabel;
  std::vector<std::string> labels;  // by id, as transformers' data sets number them
  finetune::Columns columns;        // of training and development sets
  finetune::Columns test_columns;
  std::vector<std::string> metrics;  // GLUE's. The first selects the best model
  std::vector<GlueFile> dev, test;
  // The task whose models are evaluated on it, if it has no training set of its own.
  std::string trained_as = {};

  // The layouts of training and development sets, and of test sets.
  finetune::FileLayout layout() const;
  finetune::FileLayout test_layout() const;
};

// The tasks with a training set.
std::span<const GlueTask> glue_tasks();
std::vector<std::string> glue_names();
// The names of all tasks, including AX.
std::vector<std::string> judged_glue_names();
// Accepts names in any case ("mnli"), including AX. Error: an unknown name.
const GlueTask& glue_task(std::string_view name);

}  // namespace onebit::classify
