// What every model that predicts has: a context, a turn for each caller, and bounds of its batches.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/batches/batch.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/math/device/context.h"
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

}  // namespace onebit::finetune
