#include "onebit/training/finetune/cut_texts.h"

#include <fmt/format.h>

namespace onebit::finetune {

void report_cut(const CutTexts& texts, std::vector<std::string>& decisions) {
  if (texts.cut == 0) return;
  decisions.push_back(
      fmt::format("{}: {} of {} texts are longer than {} tokens and were truncated{} "
                  "(data.max_sequence_length)",
                  texts.source, texts.cut, texts.all, texts.max_sequence_length,
                  texts.pairs ? ", the longer text of a pair first" : ""));
}

}  // namespace onebit::finetune
