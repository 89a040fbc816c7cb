// Files and examples for the tests of this floor.
#pragma once

#include <string>
#include <vector>

#include "onebit/apps/records/example_reader.h"
#include "tests/base/text_files.h"

namespace onebit::classify {

inline records::Examples examples_of(const std::vector<records::Field>& labels) {
  records::Examples examples = {.source = "train.tsv"};
  for (size_t i = 0; i < labels.size(); ++i) {
    examples.all.push_back({.text = "text", .label = labels[i], .line = i + 2});
  }
  return examples;
}

inline records::Examples examples_of(const std::vector<std::string>& labels) {
  std::vector<records::Field> fields;
  for (const std::string& label : labels) fields.push_back({.text = label});
  return examples_of(fields);
}

}  // namespace onebit::classify
