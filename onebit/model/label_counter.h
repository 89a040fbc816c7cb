// Per-item losses and hits, brought to the host and summed there in order.
#pragma once

#include <cstdint>

#include "onebit/device/staging.h"
#include "onebit/tensor/view.h"

namespace onebit::model {

// The sum of a loss over labelled items. Items with target -1 are not counted.
struct LabelSums {
  double loss = 0;
  int64_t items = 0, correct = 0;
};

class LabelCounter {
 public:
  // Host memory for up to `items` items of a model on `device`.
  void reserve(Device device, int64_t items);
  // Losses f32, correct u8, targets i32, all [items] on that device, as the work given so far
  // leaves them. Without `correct` and `targets` every item is counted, and none is a hit. Waits
  // for nothing.
  void start(const Context&, ConstView losses, ConstView correct = {}, ConstView targets = {});
  // The totals of the last start(). Waits for the work before it, not for any after it.
  LabelSums sums();

 private:
  Staging losses_, correct_, targets_;
  int64_t items_ = 0;
  bool has_targets_ = false;
};

}  // namespace onebit::model
