// The Dense modules of sentence-transformers, which make other vectors of pooled ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "onebit/data/formats/dense_module.h"
#include "onebit/math/device/context.h"

namespace onebit::embed {

// Computes in f32, on the host where the model is on another device.
class DenseLayers {
 public:
  // Both must outlive the layers and must not move.
  DenseLayers(Context& context, const std::vector<formats::DenseModule>& modules);

  // Takes vectors f32 [vectors, inputs of the first layer] and returns [vectors, outputs of the
  // last]. Without layers they stay as they are.
  std::vector<float> apply(std::vector<float> vectors);

 private:
  Context& context();

  Context& model_context_;
  std::optional<Context> host_;
  const std::vector<formats::DenseModule>& modules_;
};

}  // namespace onebit::embed
