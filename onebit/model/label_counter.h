// Per-item losses and hits, brought to the host and summed there in order.
#pragma once

#include <cstdint>

#include "onebit/model/memory_plan.h"
#include "onebit/tensor/tensor.h"

namespace onebit::model {

// What a loss over labelled items comes to. Items with target -1 are not counted.
struct LabelSums {
  double loss = 0;
  int64_t items = 0, correct = 0;
};

class LabelCounter {
 public:
  // Host staging for up to `items` items.
  void book(int64_t items);
  // losses f32, correct u8, targets i32, all [items] on any device. Waits for the device.
  LabelSums sum(ConstView losses, ConstView correct, ConstView targets) const;

 private:
  Tensor losses_, correct_, targets_;
};

}  // namespace onebit::model
