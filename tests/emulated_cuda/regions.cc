#include "tests/emulated_cuda/regions.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/emulated_cuda/device_language.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace emulated_cuda {
namespace {

constexpr size_t kGuardBytes = 256;  // also CUDA's alignment of allocations

// A NaN in f32 and both 16-bit types. It is signalling, so that even adding zero changes it.
char guard_at(const char* at) {
  return reinterpret_cast<uintptr_t>(at) % 2 == 0 ? '\xA5' : '\x7F';
}
void write_guard(char* begin) {
  for (char* at = begin; at < begin + kGuardBytes; ++at) *at = guard_at(at);
}
[[maybe_unused]] bool is_guard(const char* begin) {
  for (const char* at = begin; at < begin + kGuardBytes; ++at) {
    if (*at != guard_at(at)) return false;
  }
  return true;
}

void forbid([[maybe_unused]] const char* from, [[maybe_unused]] size_t size_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(from, size_bytes);
#endif
}
void allow([[maybe_unused]] const char* from, [[maybe_unused]] size_t size_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(from, size_bytes);
#endif
}

bool is_device(const Region& region) {
  return region.kind == MemoryKind::kDevice;
}

}  // namespace

char* Regions::add(MemoryKind kind, int device, size_t size_bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kGuardBytes, size_bytes + 2 * kGuardBytes) != 0) {
    throw std::bad_alloc();
  }
  char* const begin = static_cast<char*>(memory) + kGuardBytes;
  std::memset(begin, 0xFF, size_bytes);
  write_guard(begin - kGuardBytes);
  write_guard(begin + size_bytes);
  forbid(begin - kGuardBytes, kGuardBytes);
  forbid(begin + size_bytes, kGuardBytes);
  const Region& region = regions_[begin] = {begin, size_bytes, kind, device};
  if (is_device(region)) forbid(begin, size_bytes);
  return begin;
}

void Regions::remove(const Region& region) {
  check_guards(region);
  char* const memory = region.begin - kGuardBytes;
  allow(memory, region.size_bytes + 2 * kGuardBytes);
  regions_.erase(region.begin);
  std::free(memory);
}

const Region* Regions::of(const void* data) const {
  const auto* const at = static_cast<const char*>(data);
  auto found = regions_.upper_bound(at);
  if (found == regions_.begin()) return nullptr;
  const Region& region = (--found)->second;
  return at <= region.begin + region.size_bytes ? &region : nullptr;
}

size_t Regions::device_bytes(int device) const {
  size_t total = 0;
  for (const auto& [begin, region] : regions_) {
    total += is_device(region) && region.device == device ? region.size_bytes : 0;
  }
  return total;
}

void Regions::check_guards(const Region& region) {
#if !defined(__SANITIZE_ADDRESS__)
  if (!is_guard(region.begin - kGuardBytes) || !is_guard(region.begin + region.size_bytes)) {
    fault("memory beside an allocation was written");
  }
#else
  static_cast<void>(region);
#endif
}

void Regions::check_guards() const {
  for (const auto& [begin, region] : regions_) check_guards(region);
}

void Regions::open(int device) const {
  for (const auto& [begin, region] : regions_) {
    if (is_device(region) && (device < 0 || region.device == device)) {
      allow(region.begin, region.size_bytes);
    }
  }
}

void Regions::close() const {
  for (const auto& [begin, region] : regions_) {
    if (is_device(region)) forbid(region.begin, region.size_bytes);
  }
}

}  // namespace emulated_cuda
