// Dynamic loss scaling: DeepSpeed's state machine with hysteresis. A hysteresis of 1 halves the
// scale at every overflow.
#pragma once

#include <cstdint>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::optim {

struct LossScalerOptions {
  double static_scale = 0;  // other than 0: a constant scale
  double initial_scale = 65536;
  int64_t window = 1000;                // clean steps before the scale doubles
  int hysteresis = 2;                   // overflows before the scale is halved
  bool consecutive_hysteresis = false;  // a clean step refills the hysteresis
  double min_scale = 1;
};

// Usage: multiply the loss by scale(), divide gradients by the same scale, then call update() once
// per step with the agreement of all ranks. Growth thus never affects gradients already computed.
class LossScaler {
 public:
  explicit LossScaler(const LossScalerOptions&);

  double scale() const { return scale_; }
  void update(bool overflow);
  int hysteresis_left() const { return hysteresis_left_; }

  Json save() const;
  // Continues from a saved dynamic scale. If either the saved or the configured scale is static,
  // the saved one is ignored.
  void load(const Json&);

 private:
  void grow();

  LossScalerOptions options_;
  double scale_;
  int64_t iteration_ = 0;
  int64_t last_overflow_ = -1;
  int hysteresis_left_;
};

}  // namespace onebit::optim
