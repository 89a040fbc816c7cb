#include "onebit/training/finetune/inference.h"

#include <algorithm>
#include <utility>

#include "onebit/ground/base/error.h"

namespace onebit::finetune {

batches::BatchBounds inference_bounds(int64_t batch, std::optional<int64_t> batch_tokens,
                                      int64_t longest) {
  constexpr int64_t kUsualMost = 512;
  const int64_t usual = batch * std::min(longest, kUsualMost);
  return {.sequences = batch + 1,  // upload_rounded() adds one
          .rows = std::max(batch_tokens.value_or(usual), longest),
          .longest = longest};
}

std::vector<Example> examples_of(std::vector<std::string> texts) {
  std::vector<Example> examples(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) examples[i].text = std::move(texts[i]);
  return examples;
}

std::vector<Example> examples_of(std::vector<std::string> texts, std::vector<std::string> pairs) {
  require(pairs.size() == texts.size(), "there are {} texts and {} text pairs", texts.size(),
          pairs.size());
  std::vector<Example> examples = examples_of(std::move(texts));
  for (size_t i = 0; i < pairs.size(); ++i) examples[i].text_pair = std::move(pairs[i]);
  return examples;
}

}  // namespace onebit::finetune
