// Temporary memory of operations. It grows during the first steps and then keeps its size, so that
// later steps allocate nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/math/device/buffer.h"

namespace onebit {

// A stack of uninitialised blocks, each aligned to 64 bytes (256 on CUDA devices): blocks are
// released in reverse order. For one thread of control, whose parallel_for threads and one stream
// may use the blocks. A block may be released once the work that uses it has been submitted to the
// stream.
class Scratch {
 public:
  explicit Scratch(Device device = {}) : device_(device) {}

  class Block {
   public:
    ~Block() { scratch_->give_back(size_bytes_); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    std::byte* data() const { return data_; }
    template <typename T>
    T* as() const {
      return reinterpret_cast<T*>(data_);
    }

   private:
    friend class Scratch;
    Block(Scratch* scratch, std::byte* data, int64_t size_bytes)
        : scratch_(scratch), data_(data), size_bytes_(size_bytes) {}

    Scratch* scratch_;
    std::byte* data_;
    int64_t size_bytes_;
  };

  // Error: out of memory. Warns once if the blocks fit one by one, but not as the single piece of
  // memory that would last.
  [[nodiscard]] Block take(int64_t size_bytes);

 private:
  void give_back(int64_t size_bytes);

  Device device_;
  Buffer main_;
  std::vector<Buffer>
      overflow_;  // used while main_ is too small, merged into it once all blocks are released
  int64_t taken_bytes_ = 0, peak_bytes_ = 0;
  bool warned_ = false;  // that main_ could not be made as large as needed
};

}  // namespace onebit
