// What every model that predicts has: a context, a turn for each caller, bounds of its batches,
// files that are computed in parts, and values that are gathered over the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/tensor.h"
#include "onebit/training/finetune/example_reader.h"

namespace onebit::finetune {

// The context in which a loaded model computes. Any number of threads may call the model: its calls
// take turns.
class InferenceContext {
 public:
  // A context of the caller, which must outlive this. Nothing else may use it during a call.
  explicit InferenceContext(Context& context) : context_(context) {}
  // A context of its own, on the CPU. Absent: as many threads as the process has processors.
  explicit InferenceContext(std::optional<int> threads)
      : own_(Context::cpu(threads.value_or(available_threads()))), context_(*own_) {}
  InferenceContext(const InferenceContext&) = delete;
  InferenceContext& operator=(const InferenceContext&) = delete;

  Context& context() const { return context_; }
  // Calls `work` when no other call is running. It must not take a turn itself.
  template <typename Work>
  auto take_turn(const Work& work) {
    const std::lock_guard lock(mutex_);
    set_library_threads(context_.threads());
    return work();
  }

 private:
  std::optional<Context> own_;
  Context& context_;
  std::mutex mutex_;
};

// The bounds of batches of at most `batch` texts of `longest` tokens. `batch_tokens` limits their
// tokens (absent: 512 for each text, since some models read 8192), but one of the longest texts
// always fits.
batches::BatchBounds inference_bounds(int64_t batch, std::optional<int64_t> batch_tokens,
                                      int64_t longest);

// Texts, or pairs of texts. Error: not a second text for every first one.
std::vector<Example> examples_of(std::vector<std::string> texts);
std::vector<Example> examples_of(std::vector<std::string> texts, std::vector<std::string> pairs);

// A file is computed in parts of bounded size, so that memory does not depend on the size of the
// file. A part is computed at once, because its items are sorted by length.
struct PartLimits {
  size_t items;
  size_t size;  // the sum of sizes at which a part ends in any case
};

// Calls work(std::span<const Item>) for one part after the other. next(item) fills in a new item,
// and returns false after the last one.
template <typename Item, typename Next, typename SizeOf, typename Work>
void for_each_part(const PartLimits& limits, const Next& next, const SizeOf& size_of,
                   const Work& work) {
  std::vector<Item> part;
  for (bool is_last = false; !is_last;) {
    part.clear();
    for (size_t size = 0; part.size() < limits.items && size < limits.size;) {
      is_last = !next(part.emplace_back());
      if (is_last) {
        part.pop_back();
        break;
      }
      size += size_of(part.back());
    }
    if (!part.empty()) work(std::span<const Item>(part));
  }
}

// Returns the place of an item's values on this rank. The size is the same on every rank.
using ValuesOf = std::function<std::span<float>(uint32_t item)>;

// Gives every rank the values of all items: reads the values of the rank's own items and writes the
// others. Collective.
void gather_items(const batches::LengthSweep& sweep, comm::Communicator& communicator,
                  const ValuesOf& values_of);

struct PredictionBatch {
  int64_t items;
  int64_t tokens;  // of all items, but one item may have more
};

// Computes the values of all items, each on one rank, and gives them to all: in batches of at most
// `most`, whose items have similar lengths. predict(items) returns the model's output for one
// batch: f32 on the CPU, the items' values one after the other. Collective.
using Predict = std::function<Tensor(std::span<const uint32_t> items)>;
void predict_items(const std::vector<int32_t>& lengths, const PredictionBatch& most,
                   comm::Communicator& communicator, const ValuesOf& values_of,
                   const Predict& predict);

}  // namespace onebit::finetune
