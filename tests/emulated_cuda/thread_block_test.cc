// Threads, collectives, shared memory: what kernels may do, and what the device must detect.
#include "tests/emulated_cuda/thread_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/tensor_core_cuda.h"
#include "tests/emulated_cuda/device_memory.h"

namespace emulated_cuda {
namespace {

using onebit::kernels::cuda::block_shared;
namespace instructions = onebit::kernels::cuda;

constexpr unsigned kAll = 0xFFFFFFFFu;

__global__ void count_visits(int* visits) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * threadIdx.y;
  visits[block * blockDim.x * blockDim.y + thread] += 1;
}

TEST(EmulatedThreads, EachRunsOnce) {
  for (const char* schedule : {"late", "eager", "random:3"}) {
    const InSchedule in(schedule);
    const DeviceMemory<int> visits(std::vector<int>(2 * 3 * 2 * 40, 0));
    run({2, 3, 2}, {20, 2}, count_visits, visits.data());
    EXPECT_EQ(visits.values(), std::vector<int>(2 * 3 * 2 * 40, 1));
  }
}

__global__ void shuffles(int* results) {
  const int lane = static_cast<int>(threadIdx.x);
  int* const mine = results + 6 * lane;
  mine[0] = __shfl_xor_sync(kAll, lane, 5);
  mine[1] = __shfl_down_sync(kAll, lane, 30u);
  mine[2] = __shfl_sync(kAll, lane, 7);
  mine[3] = static_cast<int>(__ballot_sync(kAll, lane % 3 == 0) >> lane & 1u);
  mine[4] = static_cast<int>(__reduce_add_sync(kAll, static_cast<unsigned>(lane)));
  mine[5] = __syncthreads_or(lane == 9) * 2 + __syncthreads_and(lane != 9);
}

TEST(EmulatedThreads, ShufflesAndVotesReadOtherLanes) {
  for (const char* schedule : {"late", "random:1", "random:2"}) {
    const InSchedule in(schedule);
    const DeviceMemory<int> results(size_t{6 * 32});
    run(1, 32, shuffles, results.data());
    const std::vector<int> got = results.values();
    for (int lane = 0; lane < 32; ++lane) {
      const std::vector<int> wanted{lane ^ 5, lane < 2 ? lane + 30 : lane, 7, lane % 3 == 0, 496,
                                    2};
      EXPECT_EQ(std::vector<int>(got.begin() + 6 * lane, got.begin() + 6 * lane + 6), wanted);
    }
  }
}

struct Row {
  float value[64];
};

__global__ void read_neighbour(float* to, bool waits) {
  auto& row = block_shared<Row>();
  row.value[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (waits) __syncthreads();
  to[threadIdx.x] = row.value[(threadIdx.x + 33) % 64];
}

// Without the barrier a thread reads a value before it is written: NaN, also in a second block.
TEST(EmulatedThreads, AMissingBarrierShows) {
  for (const char* schedule : {"late", "random:5"}) {
    const InSchedule in(schedule);
    const DeviceMemory<float> to(size_t{64});
    run(2, 64, read_neighbour, to.data(), true);
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(to.values()[i], static_cast<float>((i + 33) % 64));
    }
    run(2, 64, read_neighbour, to.data(), false);
    const std::vector<float> wrong = to.values();
    EXPECT_TRUE(std::any_of(wrong.begin(), wrong.end(), [](float x) { return std::isnan(x); }));
  }
}

struct alignas(16) Piece {
  float value[32][4];
};

__global__ void copy_pieces(const float* from, float* to, bool ends, bool waits) {
  auto& piece = block_shared<Piece>();
  const unsigned lane = threadIdx.x;
  instructions::start_copy(instructions::shared_address(piece.value[lane]), from + 4 * lane,
                           lane % 2 == 0);
  if (ends) instructions::end_copy_group();
  if (waits) instructions::wait_for_copies();
  for (int i = 0; i < 4; ++i) to[4 * lane + i] = piece.value[lane][i];
}

TEST(EmulatedThreads, AnAsynchronousCopyIsThereWhenItsGroupIsWaitedFor) {
  std::vector<float> values(128);
  std::iota(values.begin(), values.end(), 1.0f);
  const DeviceMemory<float> from(values), to(size_t{128});
  run(1, 32, copy_pieces, from.data(), to.data(), true, true);
  for (size_t i = 0; i < 128; ++i) {
    EXPECT_EQ(to.values()[i], i / 4 % 2 == 0 ? values[i] : 0.0f) << i;
  }
  for (const bool ends : {false, true}) {
    run(1, 32, copy_pieces, from.data(), to.data(), ends, !ends);
    EXPECT_TRUE(std::isnan(to.values()[0])) << "read before it was there";
  }
}

struct alignas(16) Operands16 {
  __nv_bfloat16 a[16][16], b[16][16];  // b by rows of k
};

// c [16, 8] = a [16, 16] . b [16, 8], by the fragments of the PTX manual.
__global__ void product(const float* a, const float* b, float* c) {
  auto& shared = block_shared<Operands16>();
  const int lane = static_cast<int>(threadIdx.x), row = lane % 16;
  for (int i = lane / 16; i < 16; i += 2) {
    shared.a[row][i] = __float2bfloat16_rn(a[row * 16 + i]);
    shared.b[row][i] = __float2bfloat16_rn(i < 8 ? b[row * 8 + i] : 0.0f);
  }
  __syncwarp();
  const auto address = [&](__nv_bfloat16(&matrix)[16][16]) {
    return instructions::shared_address(&matrix[row][lane / 16 * 8]);
  };
  const instructions::Quad left = instructions::load_matrices(address(shared.a));
  const instructions::Quad right = instructions::load_transposed(address(shared.b));
  float sum[4] = {};
  instructions::multiply_add(sum, left, right.word[0], right.word[1], __nv_bfloat16{});
  for (int i = 0; i < 4; ++i) {
    c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
  }
}

TEST(EmulatedThreads, AProductOnTensorCoresIsTheMatrixProduct) {
  std::vector<float> a(256), b(128);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 13) - 6;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
  const DeviceMemory<float> left(a), right(b), result(size_t{128});
  run(1, 32, product, left.data(), right.data(), result.data());
  const std::vector<float> got = result.values();
  for (size_t row = 0; row < 16; ++row) {
    for (size_t column = 0; column < 8; ++column) {
      float sum = 0;
      for (size_t k = 0; k < 16; ++k) sum += a[row * 16 + k] * b[k * 8 + column];
      EXPECT_EQ(got[row * 8 + column], sum) << row << ", " << column;
    }
  }
}

// Each of these ends the process with the location of the fault.
__global__ void ends_early(int* to) {
  if (threadIdx.x == 3) return;
  *to = __shfl_sync(kAll, 1, 0);
}
__global__ void meets_elsewhere(int* to) {
  if (threadIdx.x < 16) {
    *to = __shfl_sync(kAll, 1, 0);
  } else {
    *to = __shfl_sync(kAll, 2, 0);
  }
}
__global__ void different_barriers(int*) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void barrier_of_some(int*) {
  if (threadIdx.x < 16) __syncthreads();
  __syncwarp();
}
__global__ void not_in_its_mask(int* to) {
  *to = __shfl_sync(0xFFFEu, 1, 1);
}
__global__ void reads_outside_its_mask(int* to) {
  if (threadIdx.x < 4) *to = __shfl_sync(0xFu, 1, 9);
}
struct Half {
  char bytes[kSharedBytes / 2];
};
struct MoreThanHalf {
  char bytes[kSharedBytes / 2 + 1];
};
__global__ void too_much_shared(int*) {
  block_shared<Half>();
  block_shared<MoreThanHalf>();
}
__global__ void unaligned_copy(int* to) {
  auto& piece = block_shared<Piece>();
  instructions::start_copy(instructions::shared_address(piece.value[0]), to + 1, true);
}
__global__ void copy_outside(int* to) {
  auto& piece = block_shared<Piece>();
  instructions::start_copy(instructions::shared_address(piece.value[0]) + 512, to, true);
}

void expect_fault(void (*kernel)(int*), const char* message) {
  const DeviceMemory<int> to(size_t{8});
  EXPECT_DEATH(run(1, 64, kernel, to.data()), message);
}

TEST(EmulatedThreadsDeathTest, FaultsAreSeen) {
  expect_fault(ends_early, "waits for a lane that has ended.*thread_block_test.cc");
  expect_fault(meets_elsewhere, "lanes of a warp meet in different collectives");
  expect_fault(different_barriers, "threads of a block meet in different barriers");
  expect_fault(barrier_of_some, "waits for its warp");
  expect_fault(not_in_its_mask, "without being in the mask");
  expect_fault(reads_outside_its_mask, "a lane that is not in its mask");
  expect_fault(too_much_shared, "larger than 48 KiB");
  expect_fault(unaligned_copy, "no multiple of its size");
  expect_fault(copy_outside, "outside of the objects in shared memory");
}

__global__ void write_at(float* to, int64_t index) {
  to[index] = 1;
}

TEST(EmulatedThreadsDeathTest, MemoryBesideAnAllocationIsGuarded) {
  const DeviceMemory<float> memory(size_t{10});
  run(1, 1, write_at, memory.data(), 9);
  EXPECT_DEATH(run(1, 1, write_at, memory.data(), 10), "beside an allocation|use-after-poison");
  EXPECT_DEATH(run(1, 1, write_at, memory.data(), -1), "beside an allocation|use-after-poison");
}

__global__ void add_zero_at(float* to, int64_t index) {
  to[index] += 0;
}

TEST(EmulatedThreadsDeathTest, EvenAddingZeroBesideAnAllocationShows) {
  const DeviceMemory<float> memory(size_t{10});
  EXPECT_DEATH(run(1, 1, add_zero_at, memory.data(), 10), "beside an allocation|use-after-poison");
}

TEST(EmulatedThreads, LaunchesADeviceRefusesAreErrors) {
  const DeviceMemory<int> to(size_t{1});
  for (const auto& [grid, block] : std::vector<std::pair<dim3, dim3>>{
           {1, 1025}, {1, {1, 1, 65}}, {{1, 65536}, 1}, {{1, 1, 65536}, 1}, {0, 1}, {1, 0}}) {
    EXPECT_EQ(start(grid, block, nullptr, count_visits, to.data()), cudaErrorInvalidConfiguration);
  }
  cudaGetLastError();
}

}  // namespace
}  // namespace emulated_cuda
