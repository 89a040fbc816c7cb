#include "onebit/model/label_counter.h"

namespace onebit::model {

void LabelCounter::book(int64_t items) {
  losses_ = Tensor(Device{}, DType::kF32, {items});
  correct_ = Tensor(Device{}, DType::kU8, {items});
  targets_ = Tensor(Device{}, DType::kI32, {items});
}

LabelSums LabelCounter::sum(ConstView losses, ConstView correct, ConstView targets) const {
  const int64_t items = targets.elements();
  LabelSums sums;
  if (items == 0) return sums;
  copy(losses_.first_rows(items), losses);
  copy(correct_.first_rows(items), correct);
  copy(targets_.first_rows(items), targets);
  for (int64_t item = 0; item < items; ++item) {
    if (targets_.data<int32_t>()[item] < 0) continue;
    sums.loss += static_cast<double>(losses_.data<float>()[item]);
    sums.correct += correct_.data<uint8_t>()[item];
    ++sums.items;
  }
  return sums;
}

}  // namespace onebit::model
