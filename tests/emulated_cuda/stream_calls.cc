// The runtime's functions for streams, events and launches.
#include <cuda_runtime.h>

#include <cstdint>

#include "tests/emulated_cuda/requested_failure.h"
#include "tests/emulated_cuda/schedule.h"
#include "tests/emulated_cuda/thread_block.h"
#include "tests/emulated_cuda/work.h"

namespace emulated_cuda {
namespace {

// The first queries of an event always return "not ready".
constexpr int kPollsBeforeReady = 2;
// The emulated program has code for these devices.
constexpr int kLeastCapability = 80;

// Whether a device accepts a launch of this shape.
bool suits_device(const dim3& grid, const dim3& block) {
  constexpr unsigned kMaxThreads = 1024, kMaxBlocksAcross = 2147483647, kMaxBlocks = 65535,
                     kMaxDepth = 64;
  const size_t threads = size_t{block.x} * block.y * block.z;
  const bool empty = threads == 0 || size_t{grid.x} * grid.y * grid.z == 0;
  return !empty && threads <= kMaxThreads && block.z <= kMaxDepth && grid.x <= kMaxBlocksAcross &&
         grid.y <= kMaxBlocks && grid.z <= kMaxBlocks;
}

bool nothing() {
  return true;
}

// Kernels on `device` may use its memory and page-locked memory of the host.
bool takes_pointer(const Regions& regions, const void* pointer, int device) {
  if (pointer == nullptr) return true;
  const Region* const region = regions.of(pointer);
  return region != nullptr && (region->kind == MemoryKind::kPinned || region->device == device);
}

// Whether a word is a small 32-bit number followed by padding, which may hold half of an old
// address: GCC 12 does not clear all padding of nested structs (ParameterWords).
bool is_small_number(const void* word) {
  constexpr uint64_t kHalf = 0xFFFFFFFFu, kSmall = 1u << 16;
  return (reinterpret_cast<uintptr_t>(word) & kHalf) < kSmall;
}

// Words of structs may be numbers, so only addresses of another device's memory are certainly
// wrong.
bool takes_word(const Regions& regions, const void* word, int device) {
  if (is_small_number(word)) return true;
  const Region* const region = regions.of(word);
  return region == nullptr || region->kind == MemoryKind::kPinned || region->device == device;
}

}  // namespace

cudaError_t launch(const cudaLaunchConfig_t& shape, const void* kernel,
                   const ParameterWords& parameters, std::function<void()> thread) {
  if (is_to_fail("cudaLaunchKernelEx")) return remember(cudaErrorUnknown);
  if (capability(current_device()) < kLeastCapability)
    return remember(cudaErrorNoKernelImageForDevice);
  const auto lock = Machine::lock();
  Machine& machine = Machine::one();
  const int device = current_device();
  if (!machine.is_stream(shape.stream) || machine.device_of(shape.stream) != device) {
    return remember(cudaErrorInvalidResourceHandle);
  }
  if (!suits_device(shape.gridDim, shape.blockDim) ||
      shape.dynamicSmemBytes > machine.dynamic_shared_bytes(kernel)) {
    return remember(cudaErrorInvalidConfiguration);
  }
  for (const void* pointer : parameters.pointers) {
    if (!takes_pointer(machine.regions(), pointer, device)) {
      return remember(cudaErrorIllegalAddress);
    }
  }
  for (const void* word : parameters.words) {
    if (!takes_word(machine.regions(), word, device)) return remember(cudaErrorIllegalAddress);
  }
  machine.append(shape.stream, device,
                 [grid = shape.gridDim, block = shape.blockDim, bytes = shape.dynamicSmemBytes,
                  body = std::move(thread)] {
                   run_grid(grid, block, bytes, body, schedule() == Schedule::kRandom);
                   Machine::one().regions().check_guards();
                   return true;
                 });
  return cudaSuccess;
}

}  // namespace emulated_cuda

using namespace emulated_cuda;

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
  if (is_to_fail("cudaFuncSetAttribute")) return remember(cudaErrorUnknown);
  const auto lock = Machine::lock();
  const size_t most = capability(current_device()) == 90 ? kMostSharedBytes : kMostSharedBytes80;
  if (value < 0 || static_cast<size_t>(value) > most) return remember(cudaErrorInvalidValue);
  Machine::one().allow_dynamic_shared_bytes(kernel, static_cast<size_t>(value));
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  current_device();
  const bool fails = is_to_fail("cudaFuncGetAttributes");
  *attributes = {.maxThreadsPerBlock = 1024};
  if (fails || capability(current_device()) < kLeastCapability)
    return remember(cudaErrorNoKernelImageForDevice);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (is_to_fail("cudaStreamCreateWithFlags")) return remember(cudaErrorUnknown);
  const auto lock = Machine::lock();
  *stream = Machine::one().create_stream(current_device(), (flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  if (is_to_fail("cudaStreamCreate")) return remember(cudaErrorUnknown);
  return cudaStreamCreateWithFlags(stream, 0);
}

// The real function returns before the work ends. Callers cannot observe the difference.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  current_device();
  auto lock = Machine::lock();
  Machine& machine = Machine::one();
  if (!machine.is_stream(stream)) return remember(cudaErrorInvalidResourceHandle);
  machine.complete(lock, stream->tail);
  machine.destroy_stream(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  current_device();
  if (is_to_fail("cudaStreamSynchronize")) return remember(cudaErrorUnknown);
  auto lock = Machine::lock();
  Machine& machine = Machine::one();
  if (!machine.is_stream(stream)) return remember(cudaErrorInvalidResourceHandle);
  const cudaStream_t real = machine.stream_of(stream);
  machine.complete(lock, real == nullptr ? machine.append(stream, -1, nothing) : real->tail);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (is_to_fail("cudaStreamWaitEvent")) return remember(cudaErrorUnknown);
  current_device();
  const auto lock = Machine::lock();
  Machine& machine = Machine::one();
  if (!machine.is_stream(stream)) return remember(cudaErrorInvalidResourceHandle);
  machine.append(stream, -1, nothing, event->work);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (is_to_fail("cudaEventCreateWithFlags")) return remember(cudaErrorUnknown);
  *event = new CUevent_st{.work = nullptr,
                          .device = current_device(),
                          .timed = (flags & cudaEventDisableTiming) == 0,
                          .polls = 0};
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  current_device();
  const auto lock = Machine::lock();
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (is_to_fail("cudaEventRecord")) return remember(cudaErrorUnknown);
  current_device();
  const auto lock = Machine::lock();
  Machine& machine = Machine::one();
  if (!machine.is_stream(stream) || machine.device_of(stream) != event->device) {
    return remember(cudaErrorInvalidResourceHandle);
  }
  event->work = machine.append(stream, -1, nothing);
  event->polls = 0;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (is_to_fail("cudaEventSynchronize")) return remember(cudaErrorUnknown);
  current_device();
  auto lock = Machine::lock();
  Machine::one().complete(lock, event->work);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (is_to_fail("cudaEventQuery")) return remember(cudaErrorUnknown);
  current_device();
  const auto lock = Machine::lock();
  const bool waits = event->work != nullptr && !event->work->done;
  if (waits && event->polls++ < kPollsBeforeReady) return remember(cudaErrorNotReady);
  return Machine::one().advance(event->work) ? cudaSuccess : remember(cudaErrorNotReady);
}

// Returns an artificial time: choices that depend on it must not affect results.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const auto lock = Machine::lock();
  if (!begin->timed || !end->timed) return remember(cudaErrorInvalidResourceHandle);
  if (begin->work == nullptr || end->work == nullptr || !end->work->done) {
    return remember(cudaErrorNotReady);
  }
  *milliseconds = 1.0f + static_cast<float>(dice()() % 1000) * 0.001f;
  return cudaSuccess;
}
