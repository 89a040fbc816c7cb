// Rotary positions (Su et al., arXiv 2104.09864): queries and keys are turned by angles that grow
// with the position, so that scores depend on distances. Column j of a head and column
// j + head_size / 2 are the two coordinates that turn by position * theta^(-2 j / head_size).
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/tensor.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// Turns the queries and keys of qkv [rows, 3 * hidden] (attention.h) in place. Activations are f32,
// bf16 or f16, arithmetic is f32. On a CPU a position outside the table is an error that names the
// row, and nothing is written.
struct Rotary {
  ConstView positions;  // i32 [rows]
  ConstView turns;      // f32 [positions, head_size]: see rotary_turns()
  int64_t heads;
  bool back = false;  // turns by the negative angles: the backward pass, on the gradient of qkv
  View qkv;           // [rows, 3 * hidden]  turned in place
};
void rotary(Context&, const Rotary&);

// The cosines, then the sines, of each position's angles: f32 [positions, head_size]. Angles are
// rounded to f32 as in transformers. `head_size` is even.
Tensor rotary_turns(Device device, double theta, int64_t positions, int64_t head_size);

}  // namespace onebit::ops
