// The gradients of a source in a step of the compressed phase: the factor of each bucket when it is
// sent, and what the ranks agree on when all buckets have been sent. On two levels a rank has its
// share of them. Its flags, squares and scales are those of the share's blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/math/device/context.h"
#include "onebit/math/updates/onebit_adam_update.h"

namespace onebit::optim {

class GradientAgreement {
 public:
  // What the ranks agreed on, the same on every rank.
  struct Result {
    bool finite = true, touched = false;
    // Means over sources of the squared norm, before and after the limits of buckets. With limits
    // also of each bucket.
    double square = 0, limited_square = 0;
    std::vector<double> bucket_squares;
  };

  // `topology` outlives this object.
  GradientAgreement(const Topology& topology, Device device);

  // Returns the factor of a bucket's gradient: the step's scale, a smaller one if a limit applies,
  // 0 if the gradient is not finite. Called on the exchange thread, by all ranks of a node for the
  // same buckets in the same order. `gradients`: the flat buffer.
  double scale(Context&, ConstView gradients, const StepInput&, int64_t bucket);
  // Sets the memory for the findings of updates::onebit_normalize.
  void prepare(updates::OnebitNormalize& args) const;

  // Called when all buckets have been sent: the findings of updates::onebit_normalize for every
  // block.
  std::span<const uint8_t> read_flags();
  // The factor of the gradient for every block.
  std::span<const double> block_scales() const { return block_scale_; }
  // Called after read_flags(). `touched`: a still entry of this rank has a gradient. Collective.
  Result agree(const StepInput&, bool touched);

  static StateLayout layout();

 private:
  const Topology& topology_;
  enum Buffer : size_t { kSquare, kFlags };
  StateTensors state_;
  std::vector<double> host_square_;
  std::vector<uint8_t> host_flags_;
  std::vector<double> block_scale_;
  std::vector<double> bucket_square_, limited_square_;  // with limits: before and after limiting
};

}  // namespace onebit::optim
