// Replaces memory_cuda.cc and cuda_stream.cc in builds without CUDA.

#include "onebit/ground/base/error.h"
#include "onebit/math/device/device_stream.h"
#include "onebit/math/device/libraries.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/device/profile.h"

namespace onebit::memory {

namespace {

[[noreturn]] void absent() {
  fail("this onebit was built without CUDA: use --device cpu, or build with -DONEBIT_CUDA=ON");
}

}  // namespace

std::byte* cuda_allocate(int, int64_t) {
  absent();
}
void cuda_release(int, std::byte*) noexcept {}
void cuda_fill_zero(int, void*, int64_t) {
  absent();
}
void cuda_copy(int, void*, const void*, int64_t) {
  absent();
}
void copy_beside(int, void*, const void*, int64_t) {
  absent();
}
int cuda_device_count() {
  return 0;
}
std::string why_no_cuda_device() {
  return "";
}
std::vector<int> capable_cuda_devices() {
  return {};
}
std::string why_cuda_device_is_unusable(int) {
  absent();
}
bool cuda_device_is_checked(int) {
  absent();
}
std::string cuda_device_uuid(int) {
  absent();
}
std::string describe_cuda_device(int) {
  absent();
}
Device device_of(int, const void*) {
  return {};
}
std::byte* allocate_staging(int, int64_t) {
  absent();
}
void release_staging(int, std::byte*) noexcept {}

}  // namespace onebit::memory

namespace onebit {

std::unique_ptr<DeviceStream> DeviceStream::open(int) {
  fail("this onebit was built without CUDA: use --device cpu, or build with -DONEBIT_CUDA=ON");
}

int cuda_version() {
  return 0;
}

void push_profiler_range(const char*) {}
void pop_profiler_range() {}

}  // namespace onebit
