// Predicts how long a training step will take from how long its parts take alone: plain arithmetic
// on figures that step_costs.h measures.
//
//   step = forward and backward of all micro-steps but the last, and the last one's forward
//        + the last backward, with the exchange of the buckets as far as it reaches beyond it
//        + the optimizer's pass over the parameters + the small agreements of the ranks
//        + what computation and exchange slow each other down
//
// A bucket may be sent when its gradients are ready, and buckets are sent in order. Each first
// takes its time on the processor (packing, compressing, reducing), which delays the end of the
// backward pass, and then its time on the wire, one bucket after the other. If buckets may be sent
// only after the backward pass (no overlap, or exact clipping or loss scaling in the compressed
// phase), all are ready at its end. The gradients of the embeddings are ready last, so their
// exchange never overlaps with the computation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::costs {

// A forward and backward pass over one micro-batch.
struct PassTimes {
  struct Ready {
    Range range;
    double seconds = 0;  // after the backward pass has begun
  };
  double forward_seconds = 0, backward_seconds = 0;
  std::vector<Ready> ready;  // in the order in which the model announced them
};

// A forward and backward pass. It calls `ready` for each range of the gradients when it is final.
using AnnouncingPass = std::function<PassTimes(const std::function<void(Range)>& ready)>;

// Estimates the mean of passes that compute the fraction `share` of the layers from a pass that
// computes all. A model announces the gradients of the heads first and the embeddings' last. The
// layers are between them and take half as long in the forward pass.
PassTimes with_share_of_layers(const PassTimes& pass, double share);

// Seconds after the start of the backward pass at which each bucket and all before it are complete.
std::vector<double> ready_seconds(const comm::Buckets& buckets, const PassTimes& pass);

// The costs of a whole bucket.
struct BucketCost {
  double wire_seconds = 0;       // one bucket after the other
  double processor_seconds = 0;  // packing, compressing, averaging, unpacking
};

// What a step of one phase consists of.
struct PhaseCosts {
  PassTimes pass;
  int64_t accumulation = 1;  // micro-steps
  bool overlap = true;       // buckets may leave during the last backward pass
  BucketCost bucket;
  double update_seconds = 0;     // the optimizer's, after the exchange
  double agreement_seconds = 0;  // small collectives that are waited for
  double delay_seconds = 0;      // of computation and exchange, by each other
};

struct StepPrediction {
  double step_seconds = 0;
  double exchange_seconds = 0;  // on the wire
  double waiting_seconds = 0;   // the part of these in which the processor is idle
};

StepPrediction predict_step(const comm::Buckets& buckets, const PhaseCosts& costs);

}  // namespace onebit::costs
