// How attention's kernels multiply where warpgroups do so asynchronously (warpgroup_cuda.h): on
// compute capability 9.0. For *_cuda.cu only.
#pragma once

#include "onebit/math/attention/attention_tile_cuda.h"
#include "onebit/math/kernels/warpgroup_cuda.h"

namespace onebit::ops::cuda {

// Rows of 32 or 64 columns. A head of 128 columns is two such halves of 64, one after the other.
template <typename T, int kHeadSize>
struct alignas(1024) SwizzledTile {
  static constexpr int kHead = kHeadSize, kColumns = kHead < 64 ? kHead : 64;
  static constexpr int kRowBytes = kColumns * 2, kHalfBytes = kTile * kRowBytes;
  using Rows = kernels::cuda::SwizzledRows<kRowBytes>;
  T data[kTile * kHead];

  __device__ uint32_t address(int row, int column) const {
    const int mixed = kColumns == 64 ? row % 8 : row / 2 % 4;
    const int half = kHead > kColumns ? column / kColumns : 0;
    const int piece = (column - half * kColumns) / 8;
    return kernels::cuda::shared_address(data) +
           static_cast<uint32_t>(half * kHalfBytes + row * kRowBytes + (piece ^ mixed) * 16);
  }
  __device__ Rows rows() const { return Rows::at(kernels::cuda::shared_address(data)); }
  // In rows(): 16 columns from the `k`-th 16 on, in the half with the `j`-th 64.
  __device__ static Rows sixteen(Rows rows, int k) {
    constexpr int kParts = kColumns / 16;
    return half(rows, k / kParts).columns_on(k % kParts * 16);
  }
  __device__ static Rows half(Rows rows, int j) { return rows.columns_on(j * (kHalfBytes / 2)); }
};

template <int kHeadSize>
struct WarpgroupProducts {
  static constexpr bool kExists = kernels::cuda::kHasWarpgroupProducts;
  static constexpr int kHead = kHeadSize;
  static constexpr int kGroups = 2;                   // of 64 rows that a thread block owns
  static constexpr int kBlocks = kHead > 64 ? 1 : 2;  // on a multiprocessor
  static constexpr int kForwardBlocks = kBlocks, kQueryBlocks = kBlocks, kKeyBlocks = kBlocks;
  template <typename T>
  using Tile = SwizzledTile<T, kHead>;

  static constexpr int kBackwardTiles = kTileSlots + kGroups;
  __device__ static constexpr int own_tile(int group) { return kTileSlots + group; }
  static constexpr bool kOwnTileIsFreed = false;

  // The 64 rows of a tile as left operands. They stay in shared memory.
  template <typename T>
  struct Rows {
    typename Tile<T>::Rows all;
  };
  template <typename T>
  __device__ static Rows<T> rows(const Tile<T>& tile, int, int) {
    return {tile.rows()};
  }

  __device__ static void publish_copies() { kernels::cuda::publish_shared_writes(); }

  template <typename T, int kResults>
  __device__ static void start_product(const Rows<T>& rows, const Tile<T>& tile, int begin, int,
                                       float (&result)[kResults][4]) {
    const auto right = tile.rows().rows_on(begin);
#pragma unroll
    for (int k = 0; k < kHead / 16; ++k) {
      const auto a = Tile<T>::sixteen(rows.all, k);
      const auto b = Tile<T>::sixteen(right, k);
      if (k == 0) {
        kernels::cuda::start_product<false>(result, a, b, T{});
      } else {
        kernels::cuda::start_product<true>(result, a, b, T{});
      }
    }
  }
  template <typename T, int kParts>
  __device__ static void start_adding(const kernels::cuda::Quad (&left)[kParts],
                                      const Tile<T>& tile, int begin, int,
                                      float (&sum)[kHead / 8][4]) {
    constexpr int kColumns = Tile<T>::kColumns, kOfHalf = kColumns / 8;
#pragma unroll
    for (int k = 0; k < kParts; ++k) {
#pragma unroll
      for (int j = 0; j < kHead / kColumns; ++j) {
        auto& part = reinterpret_cast<float(&)[kOfHalf][4]>(sum[j * kOfHalf]);
        const auto right = Tile<T>::half(tile.rows(), j).rows_on(begin + 16 * k);
        kernels::cuda::start_adding(part, left[k], right, T{});
      }
    }
  }
  __device__ static void begin_products() {
    kernels::cuda::publish_registers();
  }
  __device__ static void end_products() {
    kernels::cuda::end_product_group();
  }
  // Waits for all products. `results` names those that may be read or written from here on.
  template <class... Results>
  __device__ static void finish(Results&... results) {
    kernels::cuda::wait_for_products();
    (kernels::cuda::finished(results), ...);
  }
};

}  // namespace onebit::ops::cuda
