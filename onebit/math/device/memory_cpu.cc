#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "onebit/ground/base/error.h"
#include "onebit/math/device/memory.h"

namespace onebit::memory {
namespace {

constexpr int64_t kCpuAlignmentBytes = 64;
std::atomic<int64_t> allocations{0}, held_bytes{0}, most_held_bytes{0};

void count_held(int64_t size_bytes) {
  const int64_t held = held_bytes += size_bytes;
  int64_t most = most_held_bytes;
  while (held > most && !most_held_bytes.compare_exchange_weak(most, held)) {
  }
}

}  // namespace

std::byte* allocate(Device device, int64_t size_bytes) {
  ++allocations;
  if (!device.is_cpu()) {
    std::byte* const data = cuda_allocate(device.index, size_bytes);
    count_held(size_bytes);
    return data;
  }
  const int64_t rounded =
      (size_bytes + kCpuAlignmentBytes - 1) / kCpuAlignmentBytes * kCpuAlignmentBytes;
  void* data = std::aligned_alloc(kCpuAlignmentBytes, static_cast<size_t>(rounded));
  require(data != nullptr, "out of memory: {} bytes requested; {}", size_bytes, kOutOfMemoryAdvice);
  count_held(size_bytes);
  return static_cast<std::byte*>(data);
}

void prepare(std::byte* data, int64_t size_bytes, Use use) noexcept {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t into = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)) % page;
  const int64_t skipped = into == 0 ? 0 : page - into;
  const int64_t size = std::max<int64_t>(0, size_bytes - skipped) / page * page;
  // An older system without one of these has the usual pages, one by one.
  const auto advise = [&](int advice) {
    ::madvise(data + skipped, static_cast<size_t>(size), advice);
  };
  if (size == 0) return;
  // Huge pages are faster still, but not in virtual machines that report free memory to their host:
  // such pages are the ones that it has taken back, and loading took up to twice as long.
  advise(use == Use::kPlaces ? MADV_NOHUGEPAGE : MADV_POPULATE_WRITE);
}

void release(Device device, std::byte* data, int64_t size_bytes) noexcept {
  held_bytes -= size_bytes;
  if (device.is_cpu()) {
    std::free(data);
  } else {
    cuda_release(device.index, data);
  }
}

void fill_zero(Device device, void* data, int64_t size_bytes) {
  if (size_bytes == 0) return;
  if (device.is_cpu()) {
    std::memset(data, 0, static_cast<size_t>(size_bytes));
  } else {
    cuda_fill_zero(device.index, data, size_bytes);
  }
}

void copy(Device to_device, void* to, Device from_device, const void* from, int64_t size_bytes) {
  if (size_bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu()) {
    std::memcpy(to, from, static_cast<size_t>(size_bytes));
  } else {
    cuda_copy(from_device.is_cpu() ? to_device.index : from_device.index, to, from, size_bytes);
  }
}

int64_t allocation_count() {
  return allocations;
}

int64_t take_most_held_bytes() {
  return most_held_bytes.exchange(held_bytes);
}

}  // namespace onebit::memory
