// A recipe for classification: the keys of all fine-tuning recipes (fine_tuning_config.h), and the
// sections `data` and `classify`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onebit/apps/classify/glue.h"
#include "onebit/apps/classify/labels.h"
#include "onebit/training/finetune/example_reader.h"
#include "onebit/training/finetune/fine_tuning_config.h"
#include "onebit/training/training/model_folder.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::classify {

// The recipe's key "task".
inline constexpr const char* kClassifyTask = "classify";

struct ClassifyConfig : finetune::FineTuningConfig {
  std::string glue;  // a task of GLUE, which determines layout, labels and problem. Empty: none
  finetune::FileLayout layout;
  int64_t max_sequence_length = 128;

  LabelFormat label_format;
  std::vector<std::string> labels;              // empty: the training file's
  std::map<std::string, double> class_weights;  // by label
  std::string weighting = "none";               // or "balanced". Empty: class_weights
  std::string positive_label;                   // empty: the second
  double threshold = 0.5;
  // The places of given keys that change something for examples with several labels, or for one of
  // two labels. What a run remembers is not among them.
  std::vector<std::string> keys_of_several, keys_of_two;
  std::string best_by;  // empty: the first of classify::metric_names()
};

// Lists the keys of a recipe.
ClassifyConfig read_classify_recipe(Keys& recipe);

// Error: lists all faults of the recipe. Another task's recipe is one.
ClassifyConfig parse_classify_recipe(const Recipe& recipe);

// Error: the recipe or the command gives a key that changes nothing for a model with this problem
// and number of labels.
void require_used_keys(const ClassifyConfig& config, Problem problem, size_t labels);

// The facts that `onebit inspect` shows.
training::RecipeFacts inspect_classify_recipe(const Recipe& recipe);

// A classifier's description: the checkpoint's with the recipe's dropout.
training::ModelDescription classifier_description(const ClassifyConfig& config,
                                                  training::ModelDescription checkpoint);

}  // namespace onebit::classify
