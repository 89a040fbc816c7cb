// Copies per-item losses and hits to the host and sums them there in order.
#pragma once

#include <cstdint>

#include "onebit/math/device/buffer.h"
#include "onebit/math/tensor/view.h"

namespace onebit::model {

// The sum of a loss over labelled items. Items with target -1 are not counted.
struct LabelSums {
  double loss = 0;
  int64_t items = 0, correct = 0;
};

class LabelCounter {
 public:
  // Reserves host memory for up to `items` items of a model on `device`.
  void reserve(Device device, int64_t items);
  // Submits the copies of losses f32, correct u8 and targets i32, all [items] on that device, after
  // the work submitted so far. Without `correct` and `targets` every item is counted, and none is a
  // hit. Does not block.
  void start(const Context&, ConstView losses, ConstView correct = {}, ConstView targets = {});
  // Returns the totals of the last start(). Waits only for the work submitted before it.
  LabelSums sums();

 private:
  Staging losses_, correct_, targets_;
  int64_t items_ = 0;
  bool has_targets_ = false;
};

}  // namespace onebit::model
