// The nine tasks of GLUE (Wang et al. 2019, arXiv 1804.07461) and its diagnostic set, AX, as they
// are published: files, columns, labels, metrics, and the files that gluebenchmark.com takes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/classify/example_reader.h"
#include "onebit/classify/labels.h"

namespace onebit::classify {

struct GlueFile {
  std::string file;  // in the task's folder
  // Of a development set: what its metrics are called after, if it does not decide
  // ("mismatched_accuracy"). Of a test set: the submission's file ("MNLI-mm.tsv").
  std::string name;
};

struct GlueTask {
  std::string name;
  Problem problem = Problem::kSingleLabel;
  std::vector<std::string> labels;  // by id, as transformers' data sets number them
  Columns columns;                  // of training and development sets
  Columns test_columns;
  std::vector<std::string> metrics;  // GLUE's; the first decides
  std::vector<GlueFile> dev, test;
  // The task whose models it judges, where it has no training set of its own.
  std::string trained_as = {};

  // Of training and development sets, or of test sets.
  FileLayout layout() const;
  FileLayout test_layout() const;
};

// Those with a training set.
std::span<const GlueTask> glue_tasks();
std::vector<std::string> glue_names();
// With AX.
std::vector<std::string> judged_glue_names();
// In any case of letters ("mnli"); AX too. Error: an unknown name.
const GlueTask& glue_task(std::string_view name);

}  // namespace onebit::classify
