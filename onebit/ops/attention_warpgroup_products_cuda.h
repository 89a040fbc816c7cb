// How attention's kernels multiply where warpgroups do so asynchronously (warpgroup_cuda.h): on
// compute capability 9.0. For *_cuda.cu only.
#pragma once

#include "onebit/kernels/warpgroup_cuda.h"
#include "onebit/ops/attention_tile_cuda.h"

namespace onebit::ops::cuda {

template <typename T>
struct alignas(1024) SwizzledTile {
  T data[kTile * kTile];

  __device__ uint32_t address(int row, int column) const {
    return kernels::cuda::shared_address(data) +
           static_cast<uint32_t>(row * kTile * 2 + ((column / 8) ^ (row % 8)) * 16);
  }
  __device__ kernels::cuda::SwizzledRows rows() const {
    return kernels::cuda::SwizzledRows::at(kernels::cuda::shared_address(data));
  }
};

struct WarpgroupProducts {
  static constexpr bool kExists = kernels::cuda::kHasWarpgroupProducts;
  static constexpr int kGroups = 2;  // of 64 rows that a thread block owns
  static constexpr int kForwardBlocks = 2, kQueryBlocks = 2, kKeyBlocks = 2;
  template <typename T>
  using Tile = SwizzledTile<T>;

  static constexpr int kBackwardTiles = kTileSlots + kGroups;
  __device__ static constexpr int own_tile(int group) { return kTileSlots + group; }
  static constexpr bool kOwnTileIsFreed = false;

  // The 64 rows of a tile as left operands; they stay in shared memory.
  template <typename T>
  struct Rows {
    kernels::cuda::SwizzledRows all;
  };
  template <typename T>
  __device__ static Rows<T> rows(const Tile<T>& tile, int, int) {
    return {tile.rows()};
  }

  __device__ static void publish_copies() { kernels::cuda::publish_shared_writes(); }

  template <typename T, int kBlocks>
  __device__ static void start_product(const Rows<T>& rows, const Tile<T>& tile, int begin, int,
                                       float (&result)[kBlocks][4]) {
    const kernels::cuda::SwizzledRows right = tile.rows().rows_on(begin);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const kernels::cuda::SwizzledRows a = rows.all.columns_on(16 * k);
      const kernels::cuda::SwizzledRows b = right.columns_on(16 * k);
      if (k == 0) {
        kernels::cuda::start_product<false>(result, a, b, T{});
      } else {
        kernels::cuda::start_product<true>(result, a, b, T{});
      }
    }
  }
  template <typename T, int kParts>
  __device__ static void start_adding(const kernels::cuda::Quad (&left)[kParts],
                                      const Tile<T>& tile, int begin, int, float (&sum)[8][4]) {
#pragma unroll
    for (int k = 0; k < kParts; ++k) {
      kernels::cuda::start_adding(sum, left[k], tile.rows().rows_on(begin + 16 * k), T{});
    }
  }
  __device__ static void begin_products() {
    kernels::cuda::publish_registers();
  }
  __device__ static void end_products() {
    kernels::cuda::end_product_group();
  }
  // Waits for all products; `results` names those that may be read or written from here on.
  template <class... Results>
  __device__ static void finish(Results&... results) {
    kernels::cuda::wait_for_products();
    (kernels::cuda::finished(results), ...);
  }
};

}  // namespace onebit::ops::cuda
