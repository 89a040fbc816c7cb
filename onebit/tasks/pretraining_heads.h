// The heads of pre-training: which of them a model folder has, and what is not read from one.
#pragma once

#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/formats/match.h"
#include "onebit/model/pretraining_model.h"

namespace onebit::tasks {

// transformers' class of a model with these heads.
const char* architecture_of(model::PreTrainingHeads heads);

struct FoundHeads {
  bool masked_words = false;
  bool next_sentence = false;  // with its pooler
};
// Reads names of tensors alone. Errors: those of formats::open_checkpoint().
FoundHeads heads_in(const Path& model_folder);

// For models that must have the heads, as evaluation and filling need them: what is left of a
// file are heads of other tasks, and the next sentence's where it is not asked for.
formats::MatchRules all_present(model::PreTrainingHeads heads);
// For a first start: what the file does not have is initialized.
formats::MatchRules fresh_where_lacking(model::PreTrainingHeads heads);

// "masked-word head, pooler" of names of tensors; empty without one.
std::string parts_of(const std::vector<std::string>& names);

// The tensor that models without token types lack: zeros do what they do.
inline constexpr const char* kTokenTypes = "bert.embeddings.token_type_embeddings.weight";

}  // namespace onebit::tasks
