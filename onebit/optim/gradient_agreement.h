// This rank's gradients in a step of the compressed phase, as they leave: what each bucket is
// multiplied by, and what the ranks agree on when all have left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/comm/bucket.h"
#include "onebit/comm/communicator.h"
#include "onebit/device/context.h"
#include "onebit/ops/onebit_update.h"
#include "onebit/optim/optimizer.h"
#include "onebit/tensor/tensor.h"

namespace onebit::optim {

class GradientAgreement {
 public:
  // The same on every rank.
  struct Result {
    bool finite = true, touched = false;
    // Means over ranks of squared norms, before and after the limits of buckets, and of each bucket
    // with limits.
    double square = 0, limited_square = 0;
    std::vector<double> bucket_squares;
  };

  GradientAgreement(const comm::Buckets& buckets, Device device);

  // What the gradient of a bucket is multiplied by: the step's scale, less where a limit asks for
  // it; 0 where the gradient is not finite. On the thread of the exchange.
  double scale(Context&, ConstView gradients, const StepInput&, int64_t bucket);
  // Where ops::onebit_normalize is to write what it finds.
  void prepare(ops::OnebitNormalize& args) const;

  // When all buckets have left. Of every block, what ops::onebit_normalize has found.
  std::span<const uint8_t> read_flags();
  // Of every block, what its gradient was multiplied by.
  std::span<const double> block_scales() const { return block_scale_; }
  // After read_flags(). `touched`: a still entry of this rank has a gradient. Collective.
  Result agree(comm::Communicator&, const StepInput&, bool touched);

  int64_t size_bytes() const { return square_.view().size_bytes() + flags_.view().size_bytes(); }

 private:
  comm::Buckets buckets_;
  Tensor square_, flags_;  // [blocks]
  std::vector<double> host_square_;
  std::vector<uint8_t> host_flags_;
  std::vector<double> block_scale_;
  std::vector<double> bucket_square_, limited_square_;  // with limits: before and after
};

}  // namespace onebit::optim
