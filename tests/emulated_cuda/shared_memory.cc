#include "tests/emulated_cuda/shared_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "tests/emulated_cuda/device_language.h"
#include "tests/emulated_cuda/race_detector.h"
#include "tests/emulated_cuda/thread_block.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace emulated_cuda {
namespace {

// Gaps between objects must not be accessed.
constexpr size_t kGapBytes = 64, kAlignmentBytes = 1024, kMaxObjects = 64;
constexpr size_t kMemoryBytes = kMostSharedBytes + kMaxObjects * (kGapBytes + kAlignmentBytes);

void forbid([[maybe_unused]] char* from, [[maybe_unused]] size_t size_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(from, size_bytes);
#endif
}
void allow([[maybe_unused]] char* from, [[maybe_unused]] size_t size_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(from, size_bytes);
#endif
}

}  // namespace

SharedMemory::SharedMemory() : used_bytes_(kMemoryBytes) {
  void* const memory =
      mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  base_ = static_cast<char*>(memory);
  clear();
}

SharedMemory::~SharedMemory() {
  allow(base_, kMemoryBytes);
  munmap(base_, kMemoryBytes);
}

void SharedMemory::clear(size_t dynamic_bytes) {
  allow(base_, used_bytes_);
  race_detector::forget_pages(base_, used_bytes_);
  std::memset(base_, 0xFF, used_bytes_);
  forbid(base_, used_bytes_);
  objects_.clear();
  used_bytes_ = kGapBytes;
  objects_bytes_ = 0;
  dynamic_bytes_ = dynamic_bytes;
}

void* SharedMemory::object(const void* type, size_t size_bytes, size_t alignment_bytes) {
  for (const Object& known : objects_) {
    if (known.type == type) return base_ + known.begin;
  }
  const size_t begin = (used_bytes_ + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  objects_bytes_ = (objects_bytes_ + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  objects_bytes_ += size_bytes;
  if (size_bytes > kSharedBytes) {
    if (size_bytes > dynamic_bytes_) fault("a block's dynamic shared memory is too small");
    if (!objects_.empty()) fault("a block has dynamic shared memory beside other objects");
  } else if (objects_bytes_ > kSharedBytes) {
    fault("a block's shared memory is larger than 48 KiB");
  }
  if (objects_.size() >= kMaxObjects) fault("a block has too many objects in shared memory");
  objects_.push_back({type, begin, size_bytes});
  used_bytes_ = begin + size_bytes + kGapBytes;
  allow(base_ + begin, size_bytes);
  return base_ + begin;
}

uint32_t SharedMemory::offset(const void* data) const {
  const auto at = reinterpret_cast<uintptr_t>(data), base = reinterpret_cast<uintptr_t>(base_);
  if (at < base || at >= base + used_bytes_) fault("an address outside of shared memory");
  return static_cast<uint32_t>(at - base);
}

char* SharedMemory::piece(uint32_t at, size_t size_bytes) const {
  if (at % size_bytes != 0) fault("an address in shared memory that is no multiple of the size");
  for (const Object& object : objects_) {
    if (at >= object.begin && at + size_bytes <= object.begin + object.size_bytes) {
      return base_ + at;
    }
  }
  fault("bytes outside of the objects in shared memory");
}

uint16_t SharedMemory::half(uint32_t row, int index) const {
  uint16_t bits = 0;
  const char* const from = piece(row) + 2 * index;
  race_detector::read(from, sizeof bits);
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

const uint16_t* SharedMemory::whole_piece(uint32_t at) const {
  const char* const from = piece(at);
  race_detector::read(from, kPieceBytes);
  return reinterpret_cast<const uint16_t*>(from);
}

void SharedMemory::fill_piece(uint32_t to, int value, size_t size_bytes) {
  race_detector::wrote(piece(to, size_bytes), size_bytes);
  std::memset(piece(to, size_bytes), value, size_bytes);
}

void SharedMemory::write_piece(uint32_t to, const void* from, size_t size_bytes) {
  race_detector::read(from, size_bytes);
  race_detector::wrote(piece(to, size_bytes), size_bytes);
  std::memcpy(piece(to, size_bytes), from, size_bytes);
}

}  // namespace emulated_cuda
