// Products of warpgroups and large shared memory on the emulated device: what kernels may do, and
// what the device must detect.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/warpgroup_cuda.h"
#include "tests/emulated_cuda/device_memory.h"

namespace emulated_cuda {
namespace {

namespace instructions = onebit::kernels::cuda;
using SwizzledRows = instructions::SwizzledRows<128>;
using Value = __nv_bfloat16;

constexpr int kSize = 64, kThreads = 128;

// Two matrices of 64 x 64, swizzled: piece p of row r is at p ^ r % 8.
struct alignas(1024) Matrices {
  Value a[kSize * kSize], b[kSize * kSize];
};

uint32_t piece_of(const Value* matrix, int row, int piece) {
  return instructions::shared_address(matrix) +
         static_cast<uint32_t>(row * 128 + (piece ^ row % 8) * 16);
}

// The part of the protocol that a kernel omits.
enum class LeftOut {
  kNothing,
  kCopiesShown,
  kCopiesShownInTime,
  kOneWarp,
  kRegistersShown,
  kGroup,
  kWait,
  kSecondWait
};

void copy_matrices(Matrices& shared, const Value* a, const Value* b) {
  for (int i = static_cast<int>(threadIdx.x); i < kSize * 8; i += kThreads) {
    const int row = i / 8, piece = i % 8;
    instructions::start_copy(piece_of(shared.a, row, piece), a + row * kSize + piece * 8, true);
    instructions::start_copy(piece_of(shared.b, row, piece), b + row * kSize + piece * 8, true);
  }
  instructions::end_copy_group();
  instructions::wait_for_copies();
}

// to [2, 64, 64] = a . b^T, then this rounded result . b.
__global__ void multiply(const Value* a, const Value* b, float* to, LeftOut left_out) {
  auto& shared = instructions::block_shared<Matrices>();
  copy_matrices(shared, a, b);
  const bool late = left_out == LeftOut::kCopiesShownInTime;
  if (left_out != LeftOut::kCopiesShown && !late) instructions::publish_shared_writes();
  __syncthreads();
  if (late) instructions::publish_shared_writes();
  const auto left = SwizzledRows::at(instructions::shared_address(shared.a));
  const auto right = SwizzledRows::at(instructions::shared_address(shared.b));
  float c[8][4], d[8][4] = {};
  if (left_out != LeftOut::kRegistersShown) instructions::publish_registers();
  if (left_out == LeftOut::kOneWarp && threadIdx.x >= 96) return;
  instructions::start_product<false>(c, left, right, Value{});
  for (int k = 16; k < kSize; k += 16) {
    instructions::start_product<true>(c, left.columns_on(k), right.columns_on(k), Value{});
  }
  if (left_out != LeftOut::kGroup) instructions::end_product_group();
  if (left_out != LeftOut::kWait) instructions::wait_for_products();
  const int row = static_cast<int>(threadIdx.x) / 32 * 16 + lane_index() / 4;
  const auto place = [&](int j, int i) {
    return (row + i / 2 * 8) * kSize + j * 8 + lane_index() % 4 * 2 + i % 2;
  };
  for (int j = 0; j < 8; ++j) {
    for (int i = 0; i < 4; ++i) to[place(j, i)] = c[j][i];
  }
  const auto pair = [&](int j, int i) {
    const __nv_bfloat162 two = __floats2bfloat162_rn(c[j][i], c[j][i + 1]);
    uint32_t word = 0;
    std::memcpy(&word, &two, sizeof word);
    return word;
  };
  instructions::Quad rows[4];
  for (int k = 0; k < 4; ++k) {
    rows[k] = {{pair(2 * k, 0), pair(2 * k, 2), pair(2 * k + 1, 0), pair(2 * k + 1, 2)}};
  }
  instructions::publish_registers();
  for (int k = 0; k < 4; ++k) {
    instructions::start_adding(d, rows[k], right.rows_on(16 * k), Value{});
  }
  instructions::end_product_group();
  if (left_out != LeftOut::kSecondWait) instructions::wait_for_products();
  for (int j = 0; j < 8; ++j) {
    for (int i = 0; i < 4; ++i) to[kSize * kSize + place(j, i)] = d[j][i];
  }
}

// Small integers, whose sums are exact.
std::vector<Value> numbers(int seed) {
  std::vector<Value> values;
  for (int i = 0; i < kSize * kSize; ++i) {
    values.push_back(__float2bfloat16_rn(static_cast<float>((i * 7 + i / 64 * seed) % 5 - 2)));
  }
  return values;
}

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b,
                           bool transposed) {
  std::vector<float> c(size_t{kSize} * kSize, 0);
  for (size_t i = 0; i < kSize; ++i) {
    for (size_t j = 0; j < kSize; ++j) {
      for (size_t k = 0; k < kSize; ++k) {
        c[i * kSize + j] += a[i * kSize + k] * (transposed ? b[j * kSize + k] : b[k * kSize + j]);
      }
    }
  }
  return c;
}

std::vector<float> widened(const std::vector<Value>& values) {
  std::vector<float> wide;
  for (const Value value : values) wide.push_back(__bfloat162float(value));
  return wide;
}

std::vector<float> multiplied(LeftOut left_out) {
  DeviceMemory<Value> a(numbers(3)), b(numbers(11));
  const DeviceMemory<float> to(size_t{2} * kSize * kSize);
  run(1, kThreads, multiply, static_cast<const Value*>(a.data()),
      static_cast<const Value*>(b.data()), to.data(), left_out);
  return to.values();
}

TEST(EmulatedWarpgroup, MultipliesSwizzledMatrices) {
  const std::vector<float> a = widened(numbers(3)), b = widened(numbers(11));
  std::vector<float> wanted = product(a, b, true);
  std::vector<float> rounded = wanted;
  for (float& one : rounded) one = __bfloat162float(__float2bfloat16_rn(one));
  const std::vector<float> second = product(rounded, b, false);
  wanted.insert(wanted.end(), second.begin(), second.end());
  EXPECT_EQ(multiplied(LeftOut::kNothing), wanted);
}

TEST(EmulatedWarpgroupDeathTest, WhatIsLeftOutIsSeen) {
  EXPECT_DEATH(multiplied(LeftOut::kCopiesShown), "before copies were made visible");
  EXPECT_DEATH(multiplied(LeftOut::kCopiesShownInTime), "visible to others only after a barrier");
  EXPECT_DEATH(multiplied(LeftOut::kOneWarp), "a warpgroup have called different products");
  EXPECT_DEATH(multiplied(LeftOut::kRegistersShown), "before registers were made visible");
  EXPECT_DEATH(multiplied(LeftOut::kSecondWait), "ends without waiting for its products");
}

TEST(EmulatedWarpgroup, ResultsThatWereNotWaitedForAreNaN) {
  EXPECT_TRUE(std::isnan(multiplied(LeftOut::kWait)[0]));
  EXPECT_TRUE(std::isnan(multiplied(LeftOut::kGroup)[0]));
}

struct LargeObject {
  float value[50 << 8];  // 50 KiB
};

__global__ void fill_large(float* to) {
  auto& shared = instructions::block_shared<LargeObject>();
  shared.value[sizeof shared.value / sizeof(float) - 1] = 1;
  *to = shared.value[sizeof shared.value / sizeof(float) - 1];
}

cudaError_t launch_large(size_t size_bytes, float* to) {
  cudaLaunchConfig_t shape{};
  shape.gridDim = shape.blockDim = 1;
  shape.dynamicSmemBytes = size_bytes;
  const cudaError_t error = cudaLaunchKernelEx(&shape, fill_large, to);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}

TEST(EmulatedSharedMemory, MoreThan48KiBMustBeAskedFor) {
  const DeviceMemory<float> to(size_t{1});
  EXPECT_EQ(launch_large(sizeof(LargeObject), to.data()), cudaErrorInvalidConfiguration);
  constexpr auto kMost = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(fill_large, kMost, sizeof(LargeObject)), cudaSuccess);
  EXPECT_EQ(launch_large(sizeof(LargeObject), to.data()), cudaSuccess);
  EXPECT_EQ(to.values(), std::vector<float>{1});
  EXPECT_EQ(cudaFuncSetAttribute(fill_large, kMost, 228 << 10), cudaErrorInvalidValue);
  setenv("ONEBIT_EMULATED_CUDA_CAPABILITY", "8.0", 1);
  EXPECT_EQ(cudaFuncSetAttribute(fill_large, kMost, 164 << 10), cudaErrorInvalidValue);
  unsetenv("ONEBIT_EMULATED_CUDA_CAPABILITY");
  cudaGetLastError();
  EXPECT_DEATH(launch_large(0, to.data()), "dynamic shared memory is too small");
}

}  // namespace
}  // namespace emulated_cuda
