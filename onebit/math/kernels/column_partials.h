// Column sums computed while rows are streamed, identical for any number of threads: rows are cut
// into blocks that depend only on their number, one thread sums a block, and block sums are added
// pairwise.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/device/scratch.h"

namespace onebit::kernels {

class RowBlocks {
 public:
  explicit RowBlocks(int64_t rows);
  int64_t count() const { return count_; }
  int64_t rows_per_block() const { return rows_per_block_; }
  int64_t begin(int64_t block) const { return block * rows_per_block_; }
  int64_t end(int64_t block) const;

 private:
  int64_t rows_, rows_per_block_, count_;
};

// `sums` sets of f32 [blocks, columns].
class ColumnPartials {
 public:
  ColumnPartials(Context&, const RowBlocks&, int64_t columns, int sums);
  // Zeroes the sums of one block.
  void clear(int64_t block);
  float* of(int sum, int64_t block) const;
  // destination [columns] += the sum over blocks. Destroys the partial sums.
  void add_to(Context&, int sum, float* destination);

 private:
  int64_t blocks_, columns_;
  int sums_;
  Scratch::Block memory_;
};

}  // namespace onebit::kernels
