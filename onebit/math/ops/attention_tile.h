// The scratch memory of one attention item, with one layout for forward and backward.
#pragma once

#include <cstdint>

#include "onebit/math/kernels/dropout_plan.h"

namespace onebit::ops {

// Queries processed together: an even multiple of the rows that a product keeps in registers.
inline constexpr int64_t kQueryTile = 48;

// Row lengths, padded for the widest vectors. The key row also avoids powers of two, with which a
// transposed write would hit few cache sets.
struct AttentionLayout {
  AttentionLayout(int64_t longest, int64_t head_size)
      : key_row((longest + 15) / 16 * 16 + 16),
        head_row((head_size + 15) / 16 * 16),
        keys(longest),
        head_size_(head_size) {}

  // [head_size, keys] or [head_size / 2, keys, 2]: keys or values transposed.
  int64_t transposed_elements() const { return head_size_ * key_row; }
  // [keys, head_size]: keys, values or their gradients.
  int64_t plain_elements() const { return keys * head_row; }
  // [keys / 2, head_size, 2]: pairs of keys or values, an odd last one paired with zeros.
  int64_t paired_elements() const { return (keys + keys % 2) * head_row; }
  // [queries, keys]: scores and the values derived from them.
  int64_t score_elements() const { return kQueryTile * key_row; }
  // [queries, head_size]: queries, contexts or their gradients.
  int64_t query_elements() const { return kQueryTile * head_row; }
  int64_t bits_elements() const { return kernels::dropout_bits_elements(keys); }

  int64_t key_row, head_row, keys;

 private:
  int64_t head_size_;
};

// Takes typed arrays from the front of a block of memory.
class ScratchCursor {
 public:
  explicit ScratchCursor(std::byte* data) : data_(data) {}
  template <typename T>
  T* take(int64_t elements) {
    T* piece = reinterpret_cast<T*>(data_);
    data_ += (elements * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return piece;
  }

 private:
  std::byte* data_;
};

}  // namespace onebit::ops
