#include "onebit/math/device/buffer.h"

#include <utility>

#include "onebit/math/device/memory.h"

namespace onebit {

Buffer::Buffer(Device device, int64_t size_bytes)
    : device_(device),
      data_(size_bytes > 0 ? memory::allocate(device, size_bytes) : nullptr),
      size_bytes_(size_bytes) {}

Buffer::~Buffer() {
  if (data_ != nullptr) memory::release(device_, data_, size_bytes_);
}

Buffer::Buffer(Buffer&& other) noexcept {
  *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

void Buffer::fill_zero() {
  memory::fill_zero(device_, data_, size_bytes_);
}

}  // namespace onebit
