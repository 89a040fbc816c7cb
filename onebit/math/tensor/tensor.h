// A tensor that owns its memory.
#pragma once

#include "onebit/math/device/buffer.h"
#include "onebit/math/tensor/view.h"

namespace onebit {

class Tensor {
 public:
  Tensor() = default;
  // An uninitialised tensor.
  Tensor(Device device, DType dtype, Shape shape)
      : buffer_(device, shape.elements() * size_bytes_of(dtype)), dtype_(dtype), shape_(shape) {}

  static Tensor zeros(Device device, DType dtype, Shape shape) {
    Tensor tensor(device, dtype, shape);
    tensor.buffer_.fill_zero();
    return tensor;
  }

  View view() const { return {buffer_.data(), dtype_, shape_, buffer_.device()}; }
  // The first `rows` rows: for buffers reserved for the largest batch.
  View first_rows(int64_t rows) const { return view().rows(0, rows); }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  bool empty() const { return buffer_.data() == nullptr; }
  template <typename T>
  T* data() const {
    return view().data<T>();
  }

 private:
  Buffer buffer_;
  DType dtype_ = DType::kF32;
  Shape shape_;
};

// Copies between any two devices. Shapes and types must be equal.
void copy(View to, ConstView from);
// Returns the values as f32 on the CPU, from any type and device: for tests, files and reports.
Tensor to_cpu_f32(ConstView from);

}  // namespace onebit
