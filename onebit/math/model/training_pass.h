// The arguments of a training pass besides its batch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "onebit/math/tensor/parameter_table.h"

namespace onebit::model {

// The phases of a pass in profiles (onebit/math/device/profile.h).
inline constexpr const char* kEmbeddingsForward = "embeddings forward";
inline constexpr const char* kEncoderForward = "encoder forward";
inline constexpr const char* kHeadsForward = "heads forward";
inline constexpr const char* kHeadsBackward = "heads backward";
inline constexpr const char* kEncoderBackward = "encoder backward";
inline constexpr const char* kEmbeddingsBackward = "embeddings backward";

// Called with a range of the flat gradient buffer as soon as it is complete. The ranges of one pass
// run from the end of the buffer to its beginning, adjacent to each other, and cover the model.
using GradientsReady = std::function<void(Range)>;

// One forward and backward pass over one micro-batch. Gradients are added to those in the table, or
// written over those that are stale (tensor/parameter_table.h).
// The loss of a pass is a weighted sum over its items (masked tokens, sequences), with weights from
// the caller: 1 / (items of the whole global batch) makes the mean over it exact, however it is
// split into micro-batches and ranks.
struct TrainingPass {
  uint64_t dropout_seed = 0;           // of the run. The batch's row keys differ between steps
  double loss_scale = 1;               // multiplies every gradient, but not the reported losses
  GradientsReady gradients_ready;      // may be empty
  std::function<void()> forward_done;  // called between the two passes, for clocks, may be empty
  int64_t step = 0;                    // updates made before this one
  int64_t micro_step = 0;              // its index within the step
  // For each layer the factor of everything that it adds to the residual. 0: both passes leave the
  // layer out (layer_drop.h). Empty: every layer is computed without a factor. Pre-LN models only.
  // The first layer cannot be left out.
  std::span<const float> layer_factors = {};
};

// Dropout sites: no two places of a model share one (see kernels/dropout.h).
enum class DropoutPlace : uint32_t {
  kEmbedding = 0,  // layer 0
  kAttentionProbabilities = 1,
  kAttentionOutput = 2,
  kFeedForwardOutput = 3,
  kClassifier = 4,  // layer 0
  kPooler = 5,      // layer 0
};
inline constexpr uint32_t kDropoutPlacesPerLayer = 8;

constexpr uint32_t dropout_site(int64_t layer, DropoutPlace place) {
  return static_cast<uint32_t>(layer) * kDropoutPlacesPerLayer + static_cast<uint32_t>(place);
}

}  // namespace onebit::model
