// Files and examples for the tests of this floor.
#pragma once

#include <string>
#include <vector>

#include "onebit/training/finetune/example_reader.h"
#include "tests/base/text_files.h"

namespace onebit::classify {

inline finetune::Examples examples_of(const std::vector<finetune::Field>& labels) {
  finetune::Examples examples = {.source = "train.tsv"};
  for (size_t i = 0; i < labels.size(); ++i) {
    examples.all.push_back({.text = "text", .label = labels[i], .line = i + 2});
  }
  return examples;
}

inline finetune::Examples examples_of(const std::vector<std::string>& labels) {
  std::vector<finetune::Field> fields;
  for (const std::string& label : labels) fields.push_back({.text = label});
  return examples_of(fields);
}

}  // namespace onebit::classify
