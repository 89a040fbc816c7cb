// Tests the backend when calls of CUDA fail, and which devices it uses. Only the emulated device
// can show either.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/cuda_check.h"
#include "onebit/math/device/cuda_stream.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/device/scratch.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/tensor/tensor.h"
#include "tests/base/message_of.h"
#include "tests/emulated_cuda/requested_failure.h"
#include "tests/emulated_cuda/schedule.h"
#include "tests/emulated_cuda/work.h"

namespace emulated_cuda {
namespace {

using namespace onebit;
using testing::HasSubstr;
using testing::Not;

TEST(EmulatedBackend, AdviceFitsTheError) {
  const auto advice = [](cudaError_t status) {
    return message_of([status] { check_cuda(status, "cudaMemcpy"); });
  };
  EXPECT_THAT(advice(cudaErrorNoKernelImageForDevice), HasSubstr("CMAKE_CUDA_ARCHITECTURES"));
  EXPECT_THAT(advice(cudaErrorMemoryAllocation), HasSubstr("smaller micro-batch"));
  EXPECT_THAT(advice(cudaErrorDevicesUnavailable), HasSubstr("another process"));
  EXPECT_THAT(advice(cudaErrorECCUncorrectable), HasSubstr("a fault"));
  EXPECT_THAT(advice(cudaErrorIllegalAddress), HasSubstr("compute-sanitizer"));
  EXPECT_THAT(advice(cudaErrorLaunchFailure), HasSubstr("compute-sanitizer"));
  for (const cudaError_t other :
       {cudaErrorNoKernelImageForDevice, cudaErrorInvalidConfiguration, cudaErrorDevicesUnavailable,
        cudaErrorECCUncorrectable, cudaErrorMemoryAllocation, cudaErrorUnknown}) {
    EXPECT_THAT(advice(other), Not(HasSubstr("compute-sanitizer"))) << other;
  }
  EXPECT_EQ(message_of([] { check_cuda(cudaSuccess, "cudaMemcpy"); }), "(no error)");
}

// The build has code for compute capability 9.0 alone, and the device has 8.0.
TEST(EmulatedBackend, ADeviceWithoutCodeIsRefusedByName) {
  fail_call("cudaFuncGetAttributes", 1);
  const std::string error = message_of([] { Context::cuda(0); });
  EXPECT_THAT(error, HasSubstr("contains no code"));
  EXPECT_THAT(error, HasSubstr("CMAKE_CUDA_ARCHITECTURES=90"));
  EXPECT_EQ(memory::why_cuda_device_is_unusable(0), "");
}

TEST(EmulatedBackend, AStreamThatCannotBeMadeLeavesNothing) {
  for (const char* call : {"cudaMallocHost", "cudaStreamCreate"}) {
    fail_call(call, 1);
    EXPECT_THAT(message_of([] { Context::cuda(0); }), HasSubstr(call));
    cudaGetLastError();
    EXPECT_EQ(Context::cuda(0).device().index, 0);
  }
}

// Returns what is read after a write: one of them is work of a context and the other of a stream of
// another library, which does not wait for onebit's streams by itself.
char read_after_write(const Context& context, cudaStream_t theirs, bool they_write, bool ordered) {
  const cudaStream_t ours = CudaStream::of(context).stream();
  const cudaStream_t writer = they_write ? theirs : ours, reader = they_write ? ours : theirs;
  Buffer memory(context.device(), 2);
  memory.fill_zero();
  cudaMemsetAsync(memory.data(), 2, 1, writer);
  if (ordered) {
    they_write ? context.cuda().wait_for_stream(theirs) : context.cuda().make_stream_wait(theirs);
  }
  cudaMemcpyAsync(memory.data() + 1, memory.data(), 1, cudaMemcpyDeviceToDevice, reader);
  cudaStreamSynchronize(reader);
  char read = 0;
  memory::copy(Device{}, &read, context.device(), memory.data() + 1, 1);
  cudaStreamSynchronize(writer);
  return read;
}

TEST(EmulatedBackend, AnotherLibrarysStreamIsOrderedWhereAsked) {
  const Context context = Context::cuda(0);
  cudaStream_t theirs = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking), cudaSuccess);
  for (const bool they_write : {true, false}) {
    EXPECT_EQ(read_after_write(context, theirs, they_write, true), 2) << they_write;
    if (schedule() != Schedule::kLate) continue;
    EXPECT_EQ(read_after_write(context, theirs, they_write, false), 0) << they_write;
  }
  cudaStreamDestroy(theirs);
}

TEST(EmulatedBackend, ScratchMemoryThatDoesNotFitAsOnePieceIsReportedOnce) {
  Scratch scratch(Device{DeviceType::kCuda, 0});
  const auto two_blocks = [&] {
    const Scratch::Block first = scratch.take(1 << 20), second = scratch.take(1 << 20);
  };
  testing::internal::CaptureStderr();
  fail_call("cudaMalloc", 3);
  two_blocks();
  fail_call("cudaMalloc", 3);
  two_blocks();
  two_blocks();
  const std::string logged = testing::internal::GetCapturedStderr();
  const std::string warning = "allocates its temporary memory anew";
  EXPECT_THAT(logged, HasSubstr(warning));
  EXPECT_EQ(logged.find(warning), logged.rfind(warning)) << logged;
}

// Another process may take the memory between the question and the allocation.
TEST(EmulatedBackend, AProductWithoutMemoryForItsSampleIsComputed) {
  constexpr int64_t kRows = 512, kSize = 256;
  const Device device{DeviceType::kCuda, 0};
  const auto multiplied = [&](Context& context, int64_t rows) {
    const auto filled = [&](const Shape& shape) {
      Tensor host = Tensor::zeros({}, DType::kF32, shape);
      for (int64_t i = 0; i < shape.elements(); ++i) {
        host.data<float>()[i] = static_cast<float>(i * 7 % 13 - 6) * 0.37f;
      }
      Tensor there = Tensor::zeros(device, DType::kF32, shape);
      copy(there.view(), host.view());
      return there;
    };
    const Tensor x = filled({rows, kSize}), weight = filled({kSize, kSize});
    const Tensor y = Tensor::zeros(device, DType::kF32, {rows, kSize});
    ops::linear(context, {.x = x.view(), .weight = weight.view(), .bias = {}, .y = y.view()});
    context.synchronize();
    const Tensor host = Tensor::zeros({}, DType::kF32, {rows, kSize});
    copy(host.view(), y.view());
    return std::vector<float>(host.data<float>(), host.data<float>() + host.view().elements());
  };
  Context whole = Context::cuda(0);
  const std::vector<float> wanted = multiplied(whole, kRows);
  for (const int nth : {1, 3}) {
    Context context = Context::cuda(0);
    multiplied(context, 8);  // makes the workspace
    // After the three tensors the next memory is the sample's.
    fail_call("cudaMalloc", 3 + nth);
    EXPECT_EQ(multiplied(context, kRows), wanted);
  }
}

// Does what a rank does on its device, also on other threads.
void work_on(int device_index) {
  const Device device{DeviceType::kCuda, device_index};
  Context context = Context::cuda(device_index);
  const Buffer buffer(device, 4096);
  auto staging = std::make_unique<Staging>(device, 4096);
  std::async(std::launch::async, [&] {
    Context other = Context::cuda(device_index);
    other.wait_for(context.milestone());
    other.synchronize();
  }).get();
  staging->download(context, buffer.data(), 4096);
  std::async(std::launch::async, [&] {
    staging->wait();
    staging.reset();
    EXPECT_EQ(memory::device_of(device_index, buffer.data()), device);
  }).get();
  std::async(std::launch::async, [&] { context.synchronize(); }).get();
  const Milestone milestone = context.milestone();
  std::async(std::launch::async, [&] { const Milestone mine = milestone; }).get();
}

void exchange_on(transport::DeviceTransport transport) {
  comm::run_thread_world(2, [&](comm::Communicator& world) {
    const Device device{DeviceType::kCuda, 1 + world.rank()};
    const auto ranks = transport::make_device_communicator(world.duplicate(), device, transport);
    const auto copy = ranks->duplicate();
    const Buffer buffer(device, 64);
    const std::span<std::byte> bytes(buffer.data(), 64);
    ranks->broadcast(bytes, 1);
    // A checkpoint is written on another thread, which sends host memory.
    std::async(std::launch::async, [&] {
      std::vector<std::byte> host(8);
      copy->broadcast(host, 0);
      copy->broadcast(bytes, 0);
    }).get();
  });
}

[[noreturn]] void use_later_devices() {
  work_on(1);
  for (const auto transport :
       {transport::DeviceTransport::kStaged, transport::DeviceTransport::kNccl}) {
    exchange_on(transport);
  }
  if (has_context(0)) std::_Exit(3);
  std::_Exit(has_context(1) && has_context(2) ? 0 : 4);
}

// A context takes some hundred megabytes, which rank 0 has planned for itself.
TEST(EmulatedBackendDeathTest, RanksMakeContextsOnTheirOwnDevicesOnly) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process: this one uses device 0
  const char* const devices = std::getenv("ONEBIT_EMULATED_CUDA_DEVICES");
  const std::string before = devices == nullptr ? "" : devices;
  setenv("ONEBIT_EMULATED_CUDA_DEVICES", "3", 1);
  EXPECT_EXIT(use_later_devices(), testing::ExitedWithCode(0), "");
  if (before.empty())
    unsetenv("ONEBIT_EMULATED_CUDA_DEVICES");
  else
    setenv("ONEBIT_EMULATED_CUDA_DEVICES", before.c_str(), 1);
}

TEST(EmulatedBackendDeathTest, AThreadWithoutADeviceIsDetected) {
  const auto use = [] {
    std::async(std::launch::async, [] {
      cudaPointerAttributes attributes{};
      cudaPointerGetAttributes(&attributes, nullptr);
    }).get();
  };
  EXPECT_DEATH(use(), "before cudaSetDevice");
}

}  // namespace
}  // namespace emulated_cuda
