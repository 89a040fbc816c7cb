#include "onebit/math/kernels/row_scatter_cuda.h"

#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/kernel_cuda.h"

namespace onebit::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kChunk = 2048;  // rows processed together
constexpr int kFour = 4;      // columns per thread

__device__ float4 load_four(const float* from, int64_t count) {
  if (count >= kFour && is_aligned(from)) return *reinterpret_cast<const float4*>(from);
  return {from[0], count > 1 ? from[1] : 0.0f, count > 2 ? from[2] : 0.0f,
          count > 3 ? from[3] : 0.0f};
}

__device__ void store_four(float4 value, float* to, int64_t count) {
  to[0] = value.x;
  if (count > 1) to[1] = value.y;
  if (count > 2) to[2] = value.z;
  if (count > 3) to[3] = value.w;
}

// The rows of one id, in order: list [0, count), offsets from `first`. kWhole: all columns come in
// aligned fours, whose loads are then in flight together.
template <bool kWhole>
__device__ void add_rows(const ScatterById& call, int64_t first, const uint16_t* list, int count,
                         int64_t id) {
  for (int64_t column = int64_t{threadIdx.x} * kFour; column < call.columns;
       column += kThreads * kFour) {
    const int64_t left = call.columns - column;
    float* to = call.to + id * call.columns + column;
    float4 sum = load_four(to, left);
#pragma unroll 8
    for (int i = 0; i < count; ++i) {
      const float* from = call.from + (first + list[i]) * call.columns + column;
      const float4 value = kWhole ? *reinterpret_cast<const float4*>(from) : load_four(from, left);
      sum.x += value.x;
      sum.y += value.y;
      sum.z += value.z;
      sum.w += value.w;
    }
    store_four(sum, to, left);
  }
}

struct Found {
  uint16_t matches[kChunk], list[kChunk];
  uint8_t slots[kChunk];
  int counts[kWarps + 1], listed;
};

// A block owns ids [blockIdx.x * ids_per_block, + ids_per_block) and reads all ids.
template <bool kWhole>
__global__ void scatter(ScatterById call) {
  auto& [matches, list, slots, counts, listed] = block_shared<Found>();
  const int64_t first_id = int64_t{blockIdx.x} * call.ids_per_block;
  const int warp = static_cast<int>(threadIdx.x) / kWarp,
            lane = static_cast<int>(threadIdx.x) % kWarp;
  const unsigned before = (1u << lane) - 1;
  for (int64_t first = 0; first < call.rows; first += kChunk) {
    int found = 0;  // matches so far: the same number in every thread
    for (int at = 0; at < kChunk && first + at < call.rows; at += kThreads) {
      const int offset = at + static_cast<int>(threadIdx.x);
      const int64_t row = first + offset;
      const int64_t slot = row < call.rows ? call.ids[row] - first_id : -1;
      const bool mine = slot >= 0 && slot < call.ids_per_block && slot + first_id < call.id_count;
      const unsigned ballot = __ballot_sync(kAllLanes, mine);
      __syncthreads();  // the counts of the previous round have been read
      if (lane == 0) counts[warp] = __popc(ballot);
      __syncthreads();
      int place = found + __popc(ballot & before);
      for (int other = 0; other < kWarps; ++other) {
        if (other < warp) place += counts[other];
        found += counts[other];
      }
      if (mine) {
        matches[place] = static_cast<uint16_t>(offset);
        slots[place] = static_cast<uint8_t>(slot);
      }
    }
    __syncthreads();
    for (int slot = 0; found > 0 && slot < call.ids_per_block; ++slot) {
      if (warp == 0) {  // the matches of this id, in order
        int count = 0;
        for (int at = 0; at < found; at += kWarp) {
          const bool mine = at + lane < found && slots[at + lane] == slot;
          const unsigned ballot = __ballot_sync(kAllLanes, mine);
          if (mine) list[count + __popc(ballot & before)] = matches[at + lane];
          count += __popc(ballot);
        }
        if (lane == 0) listed = count;
      }
      __syncthreads();
      if (listed > 0) add_rows<kWhole>(call, first, list, listed, first_id + slot);
      __syncthreads();
    }
  }
}

}  // namespace

void scatter_by_id(CudaStream& cuda, const ScatterById& call) {
  if (call.rows * call.columns * call.id_count == 0) return;
  ONEBIT_INVARIANT(call.ids_per_block >= 1 && call.ids_per_block <= kWarp);
  const bool whole = call.columns % kFour == 0 && are_aligned({call.from});
  launch("scatter_by_id", cuda, blocks_of(call.id_count, call.ids_per_block), kThreads,
         whole ? scatter<true> : scatter<false>, call);
}

}  // namespace onebit::kernels::cuda
