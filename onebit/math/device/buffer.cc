#include "onebit/math/device/buffer.h"

#include <cstring>
#include <utility>

#include "onebit/ground/base/error.h"
#include "onebit/math/device/device_stream.h"
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

Staging::Staging(Device device, int64_t size_bytes) : device_(device), size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  data_ = device.is_cpu() ? memory::allocate(device, size_bytes)
                          : memory::allocate_staging(device.index, size_bytes);
}

Staging::~Staging() {
  if (data_ == nullptr) return;
  device_.is_cpu() ? memory::release(device_, data_, size_bytes_)
                   : memory::release_staging(device_.index, data_);
}

Staging::Staging(Staging&& other) noexcept {
  *this = std::move(other);
}

Staging& Staging::operator=(Staging&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(stream_, other.stream_);
  std::swap(copied_, other.copied_);
  return *this;
}

void Staging::upload(const Context& context, void* to, int64_t size_bytes) {
  copy(context, to, data_, size_bytes);
}

void Staging::download(const Context& context, const void* from, int64_t size_bytes) {
  copy(context, data_, from, size_bytes);
}

void Staging::copy(const Context& context, void* to, const void* from, int64_t size_bytes) {
  ONEBIT_INVARIANT(context.device() == device_ && size_bytes <= size_bytes_);
  if (size_bytes == 0) return;
  if (device_.is_cpu()) {
    std::memcpy(to, from, static_cast<size_t>(size_bytes));
    return;
  }
  stream_ = &context.cuda();
  stream_->copy(to, from, size_bytes);
  copied_ = stream_->record();
}

void Staging::wait() {
  if (copied_ == nullptr) return;
  stream_->await(copied_);
  copied_.reset();
}

}  // namespace onebit
