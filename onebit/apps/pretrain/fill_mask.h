// Predicts the token for each [MASK] of a text with a pre-trained model.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/text/tokenizer.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::pretrain {

struct FillCandidate {
  std::string token;
  std::string text;  // the same decoded, without blanks at its ends
  int32_t id = 0;
  double probability = 0;
};

// Candidates for one mask, the most probable first.
struct FilledMask {
  std::vector<FillCandidate> candidates;
};

class MaskFiller {
 public:
  // `path` is resolved by find_model_folder().
  MaskFiller(Context& context, const Path& path);

  const training::ModelDescription& model() const { return description_; }
  // One entry per [MASK], in order. Errors: no [MASK] in the text, more tokens than positions.
  std::vector<FilledMask> fill(std::string_view text, int64_t candidates);

 private:
  Context& context_;
  training::ModelDescription description_;
  ParameterTable table_;
  ConstantWeights weights_;
  model::PreTrainingModel model_;
  text::Tokenizer tokenizer_;
};

}  // namespace onebit::pretrain
