// Device threads under the thread sanitizer. Without it, every kernel here ends like a correct one.
// thread_block_test.cc detects races by their values.
#include "tests/emulated_cuda/race_detector.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/tensor_core_cuda.h"
#include "tests/emulated_cuda/device_memory.h"

namespace emulated_cuda {
namespace {

using onebit::kernels::cuda::block_shared;
namespace instructions = onebit::kernels::cuda;

constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr int kSanitizerFound = 66;

// Runs a kernel with and without the call that orders its accesses, and expects a race only
// without. The thread sanitizer ends a process that had a race with a specific status.
template <class Run>
void expect_race_without_order(const Run& run_once) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the sanitizer does not check forked threads
  const auto ends = [&](bool ordered) {
    run_once(ordered);
    std::exit(0);
  };
  EXPECT_EXIT(ends(true), testing::ExitedWithCode(0), "");
  if (race_detector::watches()) {
    EXPECT_EXIT(ends(false), testing::ExitedWithCode(kSanitizerFound), "data race");
  } else {
    EXPECT_EXIT(ends(false), testing::ExitedWithCode(0), "");
  }
}

struct alignas(16) Row {
  float value[64];
};

__global__ void read_after_write(float* to, bool ordered) {
  auto& row = block_shared<Row>();
  row.value[threadIdx.x] = 1;
  if (ordered) __syncthreads();
  to[threadIdx.x] = row.value[(threadIdx.x + 33) % 64];
}

__global__ void write_after_read(float* to, bool ordered) {
  auto& row = block_shared<Row>();
  row.value[threadIdx.x] = 1;
  __syncthreads();
  to[threadIdx.x] = row.value[(threadIdx.x + 33) % 64];
  if (ordered) __syncthreads();
  row.value[threadIdx.x] = 2;
}

// Accesses of two threads after their last common barrier are unordered.
__global__ void last_before_reads(float* to, bool ordered) {
  auto& row = block_shared<Row>();
  if (threadIdx.x == 0) row.value[0] = 1;
  __syncthreads();
  __syncthreads();
  if (threadIdx.x == 40) row.value[0] = 2;
  if (ordered) __syncthreads();
  if (threadIdx.x == 0) to[0] = row.value[0];
}

using Kernel = void (*)(float*, bool);

class BlockRaces : public testing::TestWithParam<Kernel> {};

TEST_P(BlockRaces, AreFoundWithoutTheBarrier) {
  expect_race_without_order([&](bool ordered) {
    const DeviceMemory<float> to(size_t{64});
    run(1, 64, GetParam(), to.data(), ordered);
  });
}

INSTANTIATE_TEST_SUITE_P(EmulatedThreads, BlockRaces,
                         testing::Values(&read_after_write, &write_after_read, &last_before_reads));

// A shuffle does not order memory. A barrier of the warp does.
__global__ void through_a_warp(float* to, bool ordered) {
  auto& row = block_shared<Row>();
  row.value[threadIdx.x] = 1;
  if (ordered) {
    __syncwarp();
  } else {
    __shfl_xor_sync(kAll, 1, 1);
  }
  to[threadIdx.x] = row.value[threadIdx.x ^ 1u];
}

TEST(EmulatedRaces, OfAWarpAreFound) {
  expect_race_without_order([](bool ordered) {
    const DeviceMemory<float> to(size_t{32});
    run(1, 32, through_a_warp, to.data(), ordered);
  });
}

__global__ void through_a_copy(const float* from, float* to, bool ordered) {
  auto& row = block_shared<Row>();
  const unsigned lane = threadIdx.x;
  if (lane < 16) {
    instructions::start_copy(instructions::shared_address(&row.value[4 * lane]), from + 4 * lane,
                             true);
    instructions::end_copy_group();
    instructions::wait_for_copies();
  }
  if (ordered) __syncwarp();
  to[lane] = row.value[lane];
}

TEST(EmulatedRaces, WithAnAsynchronousCopyAreFound) {
  expect_race_without_order([](bool ordered) {
    const DeviceMemory<float> from(std::vector<float>(64, 1.0f)), to(size_t{32});
    run(1, 32, through_a_copy, from.data(), to.data(), ordered);
  });
}

__global__ void through_matrices(float* to, bool ordered) {
  auto& row = block_shared<Row>();
  const unsigned lane = threadIdx.x;
  row.value[lane ^ 1u] = row.value[(lane ^ 1u) + 32] =
      1;  // a lane reads the value that its neighbour wrote
  if (ordered) __syncwarp();
  const auto all =
      instructions::load_matrices(instructions::shared_address(&row.value[4 * (lane % 16)]));
  to[lane] = static_cast<float>(all.word[0]);
}

TEST(EmulatedRaces, WithLoadsOfMatricesAreFound) {
  expect_race_without_order([](bool ordered) {
    const DeviceMemory<float> to(size_t{32});
    run(1, 32, through_matrices, to.data(), ordered);
  });
}

// Blocks of a grid are unordered.
__global__ void sum_of_blocks(float* to, unsigned long long* count, bool ordered) {
  if (ordered) {
    atomicAdd(count, 1ull);
  } else if (threadIdx.x == blockIdx.x) {
    to[0] += 1;
  }
}

TEST(EmulatedRaces, AcrossBlocksAreFound) {
  expect_race_without_order([](bool ordered) {
    const DeviceMemory<float> to(size_t{1});
    const DeviceMemory<unsigned long long> count(std::vector<unsigned long long>{0});
    run(4, 32, sum_of_blocks, to.data(), count.data(), ordered);
  });
}

__global__ void turned_copy(const float* from, float* to) {
  to[threadIdx.x] = from[(threadIdx.x + 33) % 64];
}

TEST(EmulatedRaces, AreNoneBetweenAGridAndTheNext) {
  const DeviceMemory<float> first(std::vector<float>(64, 1.0f)), second(size_t{64});
  for (int i = 0; i < 3; ++i) {
    run(1, 64, turned_copy, first.data(), second.data());
    run(1, 64, turned_copy, second.data(), first.data());
  }
  EXPECT_EQ(first.values(), std::vector<float>(64, 1.0f));
}

}  // namespace
}  // namespace emulated_cuda
