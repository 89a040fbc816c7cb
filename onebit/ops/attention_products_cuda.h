// Which products attention's kernels use. For *_cuda.cu only.
#pragma once

#include "onebit/ops/attention_warp_products_cuda.h"
#include "onebit/ops/attention_warpgroup_products_cuda.h"

namespace onebit::ops::cuda {

template <class Products>
inline constexpr int kThreadsOf = Products::kGroups * 128;
template <class Products>
inline constexpr int kRowsOf = Products::kGroups* kTile;

// Calls body(type, products) with tags: the activation type, 16 bits wide, and how to multiply.
template <class Body>
void with_products(const CudaStream& cuda, DType dtype, const Body& body) {
  const auto with_type = [&](auto products) {
    if (dtype == DType::kBF16) return body(__nv_bfloat16{}, products);
    body(__half{}, products);
  };
  if (cuda.has_warpgroup_products()) return with_type(WarpgroupProducts{});
  with_type(WarpProducts{});
}

}  // namespace onebit::ops::cuda
