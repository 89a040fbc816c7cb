// Reports that texts longer than a sequence were truncated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace onebit::finetune {

struct CutTexts {
  std::string source;               // their file
  int64_t cut = 0, all = 0;         // texts, or pairs of them
  int64_t max_sequence_length = 0;  // tokens
  bool pairs = false;
};

// Adds a sentence to the decisions of a task if any were cut.
void report_cut(const CutTexts& texts, std::vector<std::string>& decisions);

}  // namespace onebit::finetune
