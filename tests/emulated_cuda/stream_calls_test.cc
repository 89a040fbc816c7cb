// Order of work, devices, memory, and calls that fail at a test's request.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/emulated_cuda/device_memory.h"
#include "tests/emulated_cuda/requested_failure.h"

namespace emulated_cuda {
namespace {

__global__ void store(int* to, int value) {
  *to = value;
}
__global__ void copy_int(int* to, const int* from) {
  *to = *from;
}

struct Pinned {
  int* value = nullptr;
  Pinned() {
    void* data = nullptr;
    EXPECT_EQ(cudaMallocHost(&data, sizeof(int)), cudaSuccess);
    value = static_cast<int*>(data);
    *value = 0;
  }
  ~Pinned() { cudaFreeHost(value); }
};

struct Stream {
  cudaStream_t stream = nullptr;
  explicit Stream(unsigned flags = 0) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  }
  ~Stream() { cudaStreamDestroy(stream); }
};

struct Event {
  cudaEvent_t event = nullptr;
  Event() { EXPECT_EQ(cudaEventCreate(&event), cudaSuccess); }
  ~Event() { cudaEventDestroy(event); }
};

TEST(EmulatedStreams, LateWorkIsDoneWhenWaitedForAndEagerWorkAtOnce) {
  cudaSetDevice(0);
  for (const bool late : {true, false}) {
    const InSchedule in(late ? "late" : "eager");
    const Pinned pinned;
    const Stream stream;
    ASSERT_EQ(start(1, 1, stream.stream, store, pinned.value, 7), cudaSuccess);
    EXPECT_EQ(*pinned.value, late ? 0 : 7);
    cudaStreamSynchronize(stream.stream);
    EXPECT_EQ(*pinned.value, 7);
  }
}

// Returns the value that the second stream reads, with or without waiting for the first.
int read_beside(bool waits) {
  const DeviceMemory<int> memory(std::vector<int>{1, 0});
  const Stream writer(cudaStreamNonBlocking), reader(cudaStreamNonBlocking);
  const Event written;
  start(1, 1, writer.stream, store, memory.data(), 2);
  cudaEventRecord(written.event, writer.stream);
  if (waits) cudaStreamWaitEvent(reader.stream, written.event, 0);
  start(1, 1, reader.stream, copy_int, memory.data() + 1, memory.data());
  cudaStreamSynchronize(reader.stream);
  return memory.values()[1];
}

TEST(EmulatedStreams, AMissingWaitForAnEventShows) {
  const InSchedule in("late");
  EXPECT_EQ(read_beside(true), 2);
  EXPECT_EQ(read_beside(false), 1);
}

TEST(EmulatedStreams, RandomOrdersDiffer) {
  const InSchedule in("random:1");
  int seen[3] = {};
  for (int i = 0; i < 50; ++i) ++seen[read_beside(false)];
  EXPECT_GT(seen[1], 0);
  EXPECT_GT(seen[2], 0);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(read_beside(true), 2);
}

// A blocking stream and the legacy one wait for each other. A non-blocking one does not.
TEST(EmulatedStreams, TheLegacyStreamWaitsForTheBlockingOnes) {
  const InSchedule in("late");
  const DeviceMemory<int> memory(std::vector<int>{1});
  const Stream blocking, beside(cudaStreamNonBlocking);
  start(1, 1, beside.stream, store, memory.data(), 3);
  EXPECT_EQ(memory.values()[0], 1);
  cudaStreamSynchronize(beside.stream);
  start(1, 1, blocking.stream, store, memory.data(), 4);
  EXPECT_EQ(memory.values()[0], 4);
}

TEST(EmulatedStreams, PageLockedMemoryIsReadWhenTheCopyRuns) {
  const InSchedule in("late");
  const DeviceMemory<int> memory(size_t{1});
  const Pinned pinned;
  const Stream stream;
  *pinned.value = 5;
  cudaMemcpyAsync(memory.data(), pinned.value, sizeof(int), cudaMemcpyDefault, stream.stream);
  *pinned.value = 6;  // too early
  cudaStreamSynchronize(stream.stream);
  EXPECT_EQ(memory.values()[0], 6);
  int pageable = 7;
  cudaMemcpyAsync(memory.data(), &pageable, sizeof pageable, cudaMemcpyDefault, stream.stream);
  pageable = 8;  // the runtime has already copied it
  cudaStreamSynchronize(stream.stream);
  EXPECT_EQ(memory.values()[0], 7);
}

TEST(EmulatedStreams, AnEventIsNotReadyAtOnce) {
  const InSchedule in("late");
  cudaSetDevice(0);
  const Pinned pinned;
  const Stream stream;
  const Event event;
  start(1, 1, stream.stream, store, pinned.value, 9);
  cudaEventRecord(event.event, stream.stream);
  EXPECT_EQ(cudaEventQuery(event.event), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  while (cudaEventQuery(event.event) == cudaErrorNotReady) {
  }
  EXPECT_EQ(*pinned.value, 9);
  cudaGetLastError();
}

TEST(EmulatedMemory, FreshMemoryIsNotANumber) {
  const DeviceMemory<float> memory(size_t{100});
  for (const float value : memory.values()) EXPECT_TRUE(std::isnan(value));
}

TEST(EmulatedMemory, MoreThanThereIsIsRefused) {
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, size_t{1} << 40), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(data, nullptr);
}

TEST(EmulatedMemory, CopiesBeyondAnAllocationAreRefused) {
  const DeviceMemory<char> memory(size_t{10});
  const char bytes[11] = {};
  EXPECT_EQ(cudaMemcpy(memory.data(), bytes, 11, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(memory.data() + 5, 0, 6), cudaErrorInvalidValue);
  cudaGetLastError();
}

struct TwoPointers {
  int64_t number;
  int* pointer;
};
__global__ void store_in(TwoPointers to) {
  *to.pointer = 1;
}

TEST(EmulatedDevices, SayThatTheyAre) {
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_NE(std::string(properties.name).find("emulated"), std::string::npos);
}

TEST(EmulatedDevices, MemoryAndStreamsOfAnotherDeviceAreErrors) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  if (count < 2) GTEST_SKIP() << "one emulated device";
  const DeviceMemory<int> there(1, 1), here(1, 0);  // now device 0 is current
  EXPECT_EQ(start(1, 1, nullptr, store, there.data(), 1), cudaErrorIllegalAddress);
  EXPECT_EQ(start(1, 1, nullptr, store_in, {1, there.data()}), cudaErrorIllegalAddress);
  int of_the_host = 0;
  EXPECT_EQ(start(1, 1, nullptr, store, &of_the_host, 1), cudaErrorIllegalAddress);
  const Stream mine;
  const Event event;
  cudaSetDevice(1);
  EXPECT_EQ(start(1, 1, mine.stream, store, there.data(), 1), cudaErrorInvalidResourceHandle);
  const Stream other;
  EXPECT_EQ(cudaEventRecord(event.event, other.stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamWaitEvent(other.stream, event.event, 0), cudaSuccess);
  cudaPointerAttributes attributes{};
  cudaPointerGetAttributes(&attributes, there.data());
  EXPECT_EQ(attributes.device, 1);
  cudaSetDevice(0);
  cudaGetLastError();
}

TEST(EmulatedFailures, TheNthCallFails) {
  const DeviceMemory<int> memory(size_t{1});
  fail_call("cudaMemset", 2);
  EXPECT_EQ(cudaMemset(memory.data(), 0, 4), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory.data(), 0, 4), cudaErrorUnknown);
  EXPECT_EQ(cudaMemset(memory.data(), 0, 4), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorUnknown);
}

}  // namespace
}  // namespace emulated_cuda
