#include "onebit/math/model/label_counter.h"

namespace onebit::model {
namespace {

void fetch(const Context& context, Staging& to, const ConstView& from) {
  to.download(context, from.raw(), from.size_bytes());
}

}  // namespace

void LabelCounter::reserve(Device device, int64_t items) {
  losses_ = Staging(device, items * size_bytes_of(DType::kF32));
  correct_ = Staging(device, items * size_bytes_of(DType::kU8));
  targets_ = Staging(device, items * size_bytes_of(DType::kI32));
}

void LabelCounter::start(const Context& context, ConstView losses, ConstView correct,
                         ConstView targets) {
  items_ = losses.elements();
  has_targets_ = !targets.empty();
  fetch(context, losses_, losses);
  if (!has_targets_) return;
  fetch(context, correct_, correct);
  fetch(context, targets_, targets);
}

LabelSums LabelCounter::sums() {
  for (Staging* memory : {&losses_, &correct_, &targets_}) memory->wait();
  const auto* losses = reinterpret_cast<const float*>(losses_.data());
  const auto* correct = reinterpret_cast<const uint8_t*>(correct_.data());
  const auto* targets = reinterpret_cast<const int32_t*>(targets_.data());
  LabelSums sums;
  for (int64_t item = 0; item < items_; ++item) {
    if (has_targets_ && targets[item] < 0) continue;
    sums.loss += static_cast<double>(losses[item]);
    if (has_targets_) sums.correct += correct[item];
    ++sums.items;
  }
  return sums;
}

}  // namespace onebit::model
