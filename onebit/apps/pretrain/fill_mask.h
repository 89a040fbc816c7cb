// Predicts the token for each [MASK] of a text with a pre-trained model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/text/tokenizer.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/finetune/inference.h"
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

// Any number of threads may call it: calls take turns.
class MaskFiller {
 public:
  // `path` is resolved by find_model_folder(). Computes on the CPU, without `threads` on as many as
  // the process has processors.
  explicit MaskFiller(const Path& path, std::optional<int> threads = {});
  // Computes with `context`, which must outlive it.
  MaskFiller(Context& context, const Path& path);

  const training::ModelDescription& model() const { return description_; }
  // One entry per [MASK], in order. Errors: no [MASK] in the text, more tokens than positions.
  std::vector<FilledMask> fill(std::string_view text, int64_t candidates);

 private:
  MaskFiller(std::unique_ptr<finetune::InferenceContext> inference, const Path& path);
  std::vector<FilledMask> filled(std::string_view text, int64_t candidates);

  std::unique_ptr<finetune::InferenceContext> inference_;
  Context& context_;
  training::ModelDescription description_;
  ParameterTable table_;
  ConstantWeights weights_;
  model::PreTrainingModel model_;
  text::Tokenizer tokenizer_;
};

}  // namespace onebit::pretrain
