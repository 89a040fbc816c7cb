// Normalizes vectors to length 1 on the host, so that their products are cosines.
#pragma once

#include <cstdint>

namespace onebit::embed {

// unit = vector / length, f32 [hidden]; may alias `vector`. Returns the length, but at least 1e-12,
// as PyTorch's normalize() does.
float to_unit_length(const float* vector, int64_t hidden, float* unit);

// grad = (grad_unit - (grad_unit . unit) unit) / length
struct UnitVectorBackward {
  const float* grad_unit;  // [hidden]
  const float* unit;       // [hidden]
  float length;
  int64_t hidden;
  float* grad;  // [hidden]  overwritten; may be grad_unit
};
void to_unit_length_backward(const UnitVectorBackward& call);

}  // namespace onebit::embed
