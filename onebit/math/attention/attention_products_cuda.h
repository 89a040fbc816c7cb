// Which products attention's kernels use. For *_cuda.cu only.
#pragma once

#include <type_traits>

#include "onebit/math/attention/attention_tile_cuda.h"
#include "onebit/math/attention/attention_warpgroup_products_cuda.h"

namespace onebit::ops::cuda {

// How attention's kernels multiply where each warp does so on its own (tensor_core_cuda.h): on
// compute capability 8.0 and later. For *_cuda.cu only.

// Rows of 80, 144 or 272 bytes avoid bank conflicts.
template <typename T, int kHeadSize>
struct alignas(16) PaddedTile {
  static constexpr int kHead = kHeadSize, kRow = kHead + 8;
  T data[kTile * kRow];

  __device__ uint32_t address(int row, int column) const {
    // In 32 bits: the constant parts become offsets within the instructions.
    return kernels::cuda::shared_address(data) +
           static_cast<uint32_t>(row * kRow + column) * uint32_t{sizeof(T)};
  }
};

template <int kHeadSize>
struct WarpProducts {
  static constexpr bool kExists = true;
  static constexpr int kHead = kHeadSize;
  static constexpr int kGroups = 1;  // of 64 rows that a thread block owns
  // Blocks on a multiprocessor, by its registers (kLarge: the sums alone take 64 to 128) and by its
  // shared memory: a block of heads of 64 columns has 39 or 47 KB.
  static constexpr bool kLarge = kHead > 64;
  static constexpr int fitting(int wanted, int block_kilobytes) {
    const int fits = kernels::cuda::kMultiprocessorKilobytes / block_kilobytes;
    return kLarge ? 2 : kHead == 64 && fits < wanted ? fits : wanted;
  }
  static constexpr int kForwardBlocks = fitting(4, 48), kQueryBlocks = fitting(4, 40),
                       kKeyBlocks = fitting(3, 40);
  template <typename T>
  using Tile = PaddedTile<T, kHead>;

  // In the backward pass the block's own rows go through the last slot into registers.
  static constexpr int kBackwardTiles = kTileSlots;
  __device__ static constexpr int own_tile(int) { return kTileSlots - 1; }
  static constexpr bool kOwnTileIsFreed = true;

  // This warp's 16 rows of a tile as left operands.
  template <typename T>
  struct Rows {
    kernels::cuda::Quad part[kHead / 16];
  };
  template <typename T>
  __device__ static Rows<T> rows(const Tile<T>& tile, int warp, int lane) {
    Rows<T> rows;
#pragma unroll
    for (int k = 0; k < kHead / 16; ++k) {
      rows.part[k] = kernels::cuda::load_matrices(
          tile.address(warp % 4 * 16 + lane % 16, k * 16 + lane / 16 * 8));
    }
    return rows;
  }

  __device__ static void publish_copies() {}

  // result (16 x 8 kBlocks) = rows . (rows [begin, begin + 8 kBlocks) of the tile)^T.
  template <typename T, int kBlocks>
  __device__ static void start_product(const Rows<T>& rows, const Tile<T>& tile, int begin,
                                       int lane, float (&result)[kBlocks][4]) {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      for (float& one : result[j]) one = 0;
#pragma unroll
      for (int half = 0; half < kHead / 32; ++half) {
        const kernels::cuda::Quad b = kernels::cuda::load_matrices(
            tile.address(begin + j * 8 + lane % 8, half * 32 + lane / 8 * 8));
        kernels::cuda::multiply_add(result[j], rows.part[2 * half], b.word[0], b.word[1], T{});
        kernels::cuda::multiply_add(result[j], rows.part[2 * half + 1], b.word[2], b.word[3], T{});
      }
    }
  }
  // sum (16 x kHead) += weights (16 x 8 kBlocks) . rows [begin, ...) of the tile.
  template <typename T, int kParts>
  __device__ static void start_adding(const kernels::cuda::Quad (&left)[kParts],
                                      const Tile<T>& tile, int begin, int lane,
                                      float (&sum)[kHead / 8][4]) {
#pragma unroll
    for (int k = 0; k < kParts; ++k) {
#pragma unroll
      for (int j = 0; j < kHead / 16; ++j) {
        const kernels::cuda::Quad b = kernels::cuda::load_transposed(
            tile.address(begin + k * 16 + lane % 16, j * 16 + lane / 16 * 8));
        kernels::cuda::multiply_add(sum[2 * j], left[k], b.word[0], b.word[1], T{});
        kernels::cuda::multiply_add(sum[2 * j + 1], left[k], b.word[2], b.word[3], T{});
      }
    }
  }
  // Products are complete when they return.
  __device__ static void begin_products() {}
  __device__ static void end_products() {}
  template <class... Results>
  __device__ static void finish(Results&...) {}
};

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
