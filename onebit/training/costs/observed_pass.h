// A forward and backward pass of pre-training over random words, recorded by a profile: the work of
// its operations by kind, and their time. A plan counts the work of a recipe's passes with it, and
// measures the rates that a machine reaches (machine_costs.h).
#pragma once

#include <cstdint>

#include "onebit/ground/base/dtype.h"
#include "onebit/math/device/context.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/memory_plan.h"
#include "onebit/math/model/pretraining_model.h"

namespace onebit::costs {

// One number for each kind of operation that has a rate of its own.
struct ByKind {
  double products = 0;   // matrix products
  double attention = 0;  // attention, including its own products
  double rest = 0;       // memory-bound operations, and the code between operations

  double sum() const { return products + attention + rest; }
};
ByKind operator+(const ByKind& a, const ByKind& b);
ByKind operator-(const ByKind& a, const ByKind& b);
ByKind operator*(double factor, const ByKind& a);
// Kind by kind, or 0 where there is no work.
ByKind operator/(const ByKind& a, const ByKind& b);

// The parts of a pass in order. The heads compute all but their last gradients in the forward part.
// The last ones are ready at the end of `heads`, the embeddings' at the very end.
struct PassParts {
  ByKind forward, heads, encoder, embeddings;  // the last three: backward

  ByKind backward() const { return heads + encoder + embeddings; }
};

struct ObservedPass {
  // Operations of products and of attention, bytes of the rest: the minimum that the computation
  // requires (kernels/device_switch.h).
  PassParts work;
  PassParts seconds;
};

struct PassShape {
  model::EncoderConfig model;
  model::PreTrainingHeads heads = model::PreTrainingHeads::kBoth;
  model::MemoryOptions memory;
  int64_t sequences = 1, length = 128, masked = 20;  // full sequences, masked tokens of each
};

// Returns the fastest of the passes that fit into `seconds`, at least one, after one that prepares
// kernels and touches memory. With 0 seconds it is that first one. CPU contexts only, since the
// host's clock measures only the launches of a GPU's operations.
ObservedPass observe_pass(Context& context, const PassShape& shape, DType compute, double seconds);

}  // namespace onebit::costs
