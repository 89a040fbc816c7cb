// Which products attention's kernels use. For *_cuda.cu only.
#pragma once

#include <type_traits>

#include "onebit/math/ops/attention_warp_products_cuda.h"
#include "onebit/math/ops/attention_warpgroup_products_cuda.h"

namespace onebit::ops::cuda {

template <class Products>
inline constexpr int kThreadsOf = Products::kGroups * 128;
template <class Products>
inline constexpr int kRowsOf = Products::kGroups* kTile;

// Calls body(type, products) with tags: the activation type, 16 bits wide, and how to multiply
// heads of `head_size` columns, 32, 64 or 128 (attention_uses_tiles()).
template <class Body>
void with_products(const CudaStream& cuda, DType dtype, int64_t head_size, const Body& body) {
  const auto with_type = [&](auto products) {
    if (dtype == DType::kBF16) return body(__nv_bfloat16{}, products);
    body(__half{}, products);
  };
  const auto with_head = [&](auto head) {
    constexpr int kHead = decltype(head)::value;
    if (cuda.has_warpgroup_products()) return with_type(WarpgroupProducts<kHead>{});
    with_type(WarpProducts<kHead>{});
  };
  if (head_size == 32) return with_head(std::integral_constant<int, 32>{});
  if (head_size == 64) return with_head(std::integral_constant<int, 64>{});
  with_head(std::integral_constant<int, 128>{});
}

}  // namespace onebit::ops::cuda
