#include "onebit/training/finetune/inference.h"

#include <algorithm>
#include <utility>
#include <vector>

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

void gather_items(const batches::LengthSweep& sweep, comm::Communicator& communicator,
                  const ValuesOf& values_of) {
  if (communicator.world_size() == 1) return;
  std::vector<std::vector<uint32_t>> items;
  std::vector<int64_t> sizes_bytes;
  int64_t all_bytes = 0;
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    items.push_back(sweep.items_of(rank));
    int64_t size_bytes = 0;
    for (const uint32_t item : items.back()) {
      size_bytes += static_cast<int64_t>(values_of(item).size_bytes());
    }
    sizes_bytes.push_back(size_bytes);
    all_bytes += size_bytes;
  }
  std::vector<float> mine, all(static_cast<size_t>(all_bytes) / sizeof(float));
  for (const uint32_t item : items[static_cast<size_t>(communicator.rank())]) {
    const std::span<const float> values = values_of(item);
    mine.insert(mine.end(), values.begin(), values.end());
  }
  communicator.all_gather_v(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                            sizes_bytes);
  auto from = all.begin();
  for (const auto& of_rank : items) {
    for (const uint32_t item : of_rank) {
      const std::span<float> to = values_of(item);
      std::copy_n(from, to.size(), to.begin());
      from += static_cast<ptrdiff_t>(to.size());
    }
  }
}

namespace {

// The first of the items that fit into a batch together.
std::span<const uint32_t> first_that_fit(std::span<const uint32_t> items,
                                         const std::vector<int32_t>& lengths, int64_t tokens) {
  size_t count = 0;
  for (int64_t sum = 0; count < items.size(); ++count) {
    sum += lengths[items[count]];
    if (sum > tokens && count > 0) break;
  }
  return items.first(count);
}

}  // namespace

void predict_items(const std::vector<int32_t>& lengths, const PredictionBatch& most,
                   comm::Communicator& communicator, const ValuesOf& values_of,
                   const Predict& predict) {
  const batches::LengthSweep sweep(lengths, most.items, communicator.world_size(),
                                   communicator.rank());
  for (int64_t index = 0; index < sweep.batches(); ++index) {
    std::span<const uint32_t> left = sweep.items(index);
    while (!left.empty()) {
      const std::span<const uint32_t> items = first_that_fit(left, lengths, most.tokens);
      left = left.subspan(items.size());
      const Tensor values = predict(items);
      const float* from = values.data<float>();
      for (const uint32_t item : items) {
        const std::span<float> to = values_of(item);
        std::copy_n(from, to.size(), to.begin());
        from += to.size();
      }
    }
  }
  gather_items(sweep, communicator, values_of);
}

}  // namespace onebit::finetune
