// The shared memory of the running block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulated_cuda {

class SharedMemory {
 public:
  static constexpr size_t kPieceBytes = 16;  // the largest asynchronous copy

  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  // Starts a new block: removes all objects, and fills every used byte with NaN.
  void clear(size_t dynamic_bytes = 0);
  void* object(const void* type, size_t size_bytes, size_t alignment_bytes);
  uint32_t offset(const void* data) const;
  uint16_t half(uint32_t row, int index) const;
  const uint16_t* whole_piece(uint32_t at) const;
  void fill_piece(uint32_t to, int value, size_t size_bytes);
  void write_piece(uint32_t to, const void* from, size_t size_bytes);

 private:
  struct Object {
    const void* type;
    size_t begin, size_bytes;
  };
  char* piece(uint32_t at, size_t size_bytes = kPieceBytes) const;

  char* base_ = nullptr;
  std::vector<Object> objects_;
  size_t used_bytes_ = 0;     // including the gaps
  size_t objects_bytes_ = 0;  // as a real device counts them
  size_t dynamic_bytes_ = 0;
};

}  // namespace emulated_cuda
