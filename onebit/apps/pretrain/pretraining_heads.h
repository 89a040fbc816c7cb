// The heads of pre-training: which of them a model folder has, and which tensors are not read.
#pragma once

#include <string>
#include <vector>

#include "onebit/data/formats/tensor_source.h"
#include "onebit/ground/base/file.h"
#include "onebit/math/model/pretraining_model.h"

namespace onebit::pretrain {

// transformers' class of a model with these heads.
const char* architecture_of(model::PreTrainingHeads heads);

struct FoundHeads {
  bool masked_words = false;
  bool next_sentence = false;  // with its pooler
};
// Reads only the names of tensors. Errors: as for formats::open_checkpoint().
FoundHeads heads_in(const Path& model_folder);
// The same. Error: no masked-word head.
FoundHeads require_masked_words(const Path& model_folder);

// Rules for models that must have the heads (evaluation, filling masks): ignores heads of other
// tasks, and the next-sentence head unless it is requested.
formats::MatchRules all_present(model::PreTrainingHeads heads);
// Rules for a first start: tensors that the file lacks are initialized.
formats::MatchRules fresh_where_lacking(model::PreTrainingHeads heads);

// Describes tensor names: "masked-word head, pooler". Empty if none belongs to a head.
std::string parts_of(const std::vector<std::string>& names);

// The tensor that models without token types lack: zeros are equivalent.
inline constexpr const char* kTokenTypes = "bert.embeddings.token_type_embeddings.weight";

}  // namespace onebit::pretrain
