// Views: a pointer, an element type, a shape and a device. They are contiguous row-major, not
// owning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "onebit/ground/base/dtype.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/device/device.h"

namespace onebit {

// A range of the elements of a flat buffer.
struct Range {
  int64_t begin = 0, end = 0;  // elements [begin, end)

  int64_t elements() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

class ConstView {
 public:
  ConstView() = default;
  ConstView(const void* data, DType dtype, Shape shape, Device device)
      : data_(data), dtype_(dtype), shape_(shape), device_(device) {}

  // A CPU view of typed memory.
  template <typename T>
  static ConstView of(const T* data, Shape shape) {
    return {data, DTypeOf<T>::value, shape, Device{}};
  }

  bool empty() const { return data_ == nullptr; }
  const void* raw() const { return data_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  Device device() const { return device_; }
  int64_t elements() const { return shape_.elements(); }
  int64_t size_bytes() const { return elements() * size_bytes_of(dtype_); }
  int64_t extent(int axis) const { return shape_[axis]; }

  template <typename T>
  const T* data() const {
    ONEBIT_INVARIANT(data_ == nullptr || dtype_ == DTypeOf<T>::value);
    return static_cast<const T*>(data_);
  }
  // Rows [begin, end) of the outermost axis.
  ConstView rows(int64_t begin, int64_t end) const;
  ConstView reshaped(Shape shape) const;

 protected:
  const void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  Shape shape_;
  Device device_;
};

// A view whose elements may be written.
class View : public ConstView {
 public:
  View() = default;
  View(void* data, DType dtype, Shape shape, Device device)
      : ConstView(data, dtype, shape, device) {}

  template <typename T>
  static View of(T* data, Shape shape) {
    return {data, DTypeOf<T>::value, shape, Device{}};
  }

  void* raw() const { return const_cast<void*>(data_); }
  template <typename T>
  T* data() const {
    return const_cast<T*>(ConstView::data<T>());
  }
  View rows(int64_t begin, int64_t end) const;
  View reshaped(Shape shape) const;
};

// The first rows of the sequences of a packed batch: ascending from 0 to the number of rows:
// sequence s has rows [starts[s], starts[s + 1]). Device and host hold the same numbers.
struct SequenceStarts {
  ConstView device;               // i32 [batch + 1]
  std::span<const int32_t> host;  // batch + 1

  // Tokens of the longest sequence.
  int64_t longest() const {
    int64_t most = 0;
    for (size_t i = 1; i < host.size(); ++i) most = std::max(most, int64_t{host[i]} - host[i - 1]);
    return most;
  }
};

}  // namespace onebit
