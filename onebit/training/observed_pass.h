// A forward and backward pass of pre-training over words drawn at random, seen through a profile:
// what its operations do, by kind, and how long they take. A plan counts with it what a recipe's
// passes do, and measures with it what a machine reaches (machine_costs.h).
#pragma once

#include <cstdint>

#include "onebit/device/context.h"
#include "onebit/model/config.h"
#include "onebit/model/memory_plan.h"
#include "onebit/tensor/dtype.h"

namespace onebit::training {

// One number for each kind of operation that has a rate of its own.
struct ByKind {
  double products = 0;   // matrix products
  double attention = 0;  // attention, its products among its own operations
  double rest = 0;       // all that moves memory and multiplies no matrices, and the code between

  double sum() const { return products + attention + rest; }
};
ByKind operator+(const ByKind& a, const ByKind& b);
ByKind operator-(const ByKind& a, const ByKind& b);
ByKind operator*(double factor, const ByKind& a);
// Kind by kind; 0 where there is no work.
ByKind operator/(const ByKind& a, const ByKind& b);

// The parts of a pass in their order. The heads make their gradients in the forward part but for
// the last ones; these are ready when `heads` has ended, those of the embeddings at the very end.
struct PassParts {
  ByKind forward, heads, encoder, embeddings;  // the last three: backward

  ByKind backward() const { return heads + encoder + embeddings; }
};

struct ObservedPass {
  // Operations of products and of attention, bytes of the rest: what operations cannot do without
  // (kernels/work.h).
  PassParts work;
  PassParts seconds;
};

struct PassShape {
  model::BertConfig model;
  model::MemoryOptions memory;
  int64_t sequences = 1, length = 128, masked = 20;  // full sequences; masked tokens of each
};

// The fastest of the passes that fit into `seconds`, at least one, after one that prepares kernels
// and touches memory; with 0 seconds that first one. CPU contexts only, since a GPU's operations
// are only launched by the host's clock.
ObservedPass observe_pass(Context& context, const PassShape& shape, DType compute, double seconds);

}  // namespace onebit::training
