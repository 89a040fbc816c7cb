// The parts of a BERT in a checkpoint, and transformers' class of a model with these parts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/data/formats/bert_config_file.h"
#include "onebit/data/formats/match.h"

namespace onebit::convert {

struct TaskHeads {
  std::vector<std::string> lacking;  // prefixes ("qa_outputs.") of parts that are absent
  std::string architecture;          // "BertForQuestionAnswering"
  int64_t classes = 0;               // rows of "classifier.", 0 without one
};

// The parts of a list of tensors under our names. A part is present if one of its tensors is.
// `config_architecture` distinguishes models of the same tensors (token classification from
// sequence classification).
TaskHeads find_heads(std::span<const formats::TensorEntry> ours,
                     const std::string& config_architecture);

// Every tensor that a model of this config may have, all heads included.
std::vector<formats::WantedTensor> all_tensors(const formats::BertConfigFile& config,
                                               const TaskHeads& heads);

}  // namespace onebit::convert
