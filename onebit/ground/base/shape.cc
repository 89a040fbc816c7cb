#include "onebit/ground/base/shape.h"

#include <fmt/format.h>

#include "onebit/ground/base/error.h"

namespace onebit {

Shape::Shape(std::initializer_list<int64_t> extents) {
  for (const int64_t extent : extents) append(extent);
}

void Shape::append(int64_t extent) {
  ONEBIT_INVARIANT(rank_ < kMaxRank && extent >= 0);
  extents_[static_cast<size_t>(rank_++)] = extent;
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && extents_ == other.extents_;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += fmt::format("{}{}", axis == 0 ? "" : ", ", shape[axis]);
  }
  return text + "]";
}

}  // namespace onebit
