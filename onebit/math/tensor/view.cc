#include "onebit/math/tensor/view.h"

namespace onebit {

ConstView ConstView::rows(int64_t begin, int64_t end) const {
  ONEBIT_INVARIANT(shape_.rank() >= 1 && 0 <= begin && begin <= end && end <= shape_[0]);
  Shape shape{end - begin};
  int64_t row_bytes = size_bytes_of(dtype_);
  for (int axis = 1; axis < shape_.rank(); ++axis) {
    shape.append(shape_[axis]);
    row_bytes *= shape_[axis];
  }
  return {static_cast<const std::byte*>(data_) + begin * row_bytes, dtype_, shape, device_};
}

ConstView ConstView::reshaped(Shape shape) const {
  ONEBIT_INVARIANT(shape.elements() == elements());
  return {data_, dtype_, shape, device_};
}

View View::rows(int64_t begin, int64_t end) const {
  const ConstView part = ConstView::rows(begin, end);
  return {const_cast<void*>(part.raw()), dtype_, part.shape(), device_};
}

View View::reshaped(Shape shape) const {
  ONEBIT_INVARIANT(shape.elements() == elements());
  return {raw(), dtype_, shape, device_};
}

}  // namespace onebit
