// Arrays for numpy that own the memory of a vector.
#pragma once

#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "python/src/module.h"

namespace onebit::python {

template <typename T, size_t kDimensions>
using NumpyArray = nb::ndarray<nb::numpy, T, nb::ndim<kDimensions>>;

// `shape` has as many elements as the vector.
template <typename T, size_t kDimensions>
NumpyArray<T, kDimensions> array_of(std::vector<T> values, const size_t (&shape)[kDimensions]) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  T* data = kept->data();
  const nb::capsule owner(
      kept.release(), [](void* memory) noexcept { delete static_cast<std::vector<T>*>(memory); });
  return NumpyArray<T, kDimensions>(data, kDimensions, shape, owner);
}

// [n]
template <typename T>
NumpyArray<T, 1> array_of(std::vector<T> values) {
  const size_t shape[] = {values.size()};
  return array_of(std::move(values), shape);
}

}  // namespace onebit::python
