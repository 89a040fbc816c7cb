#include "onebit/math/device/constant_weights.h"

#include <utility>

#include "onebit/math/device/onednn_stream.h"

namespace onebit {

ConstantWeights::ConstantWeights(Context& context, const void* values, int64_t size_bytes)
    : values_(values) {
  if (!context.device().is_cpu()) return;
  onednn_ = &context.onednn();
  onednn_->packed_weights().add(values, static_cast<const std::byte*>(values) + size_bytes);
}

ConstantWeights::ConstantWeights(ConstantWeights&& other) noexcept
    : onednn_(std::exchange(other.onednn_, nullptr)), values_(other.values_) {}

ConstantWeights& ConstantWeights::operator=(ConstantWeights&& other) noexcept {
  std::swap(onednn_, other.onednn_);
  std::swap(values_, other.values_);
  return *this;
}

void ConstantWeights::changed() {
  if (onednn_ != nullptr) onednn_->packed_weights().changed(values_);
}

ConstantWeights::~ConstantWeights() {
  if (onednn_ != nullptr) onednn_->packed_weights().remove(values_);
}

bool is_quantised(const Context& context, const void* weight) {
  return context.device().is_cpu() &&
         context.onednn().packed_weights().quantised(weight) != nullptr;
}

}  // namespace onebit
