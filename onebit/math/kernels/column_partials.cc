#include "onebit/math/kernels/column_partials.h"

#include <algorithm>

#include "onebit/math/kernels/for_parts.h"

namespace onebit::kernels {

RowBlocks::RowBlocks(int64_t rows)
    : rows_(rows),
      rows_per_block_(std::clamp<int64_t>(rows / 32, 8, 64)),
      count_((rows + rows_per_block_ - 1) / rows_per_block_) {}

int64_t RowBlocks::end(int64_t block) const {
  return std::min(rows_, (block + 1) * rows_per_block_);
}

ColumnPartials::ColumnPartials(Context& context, const RowBlocks& blocks, int64_t columns, int sums)
    : blocks_(blocks.count()),
      columns_(columns),
      sums_(sums),
      memory_(
          context.scratch().take(blocks_ * columns * sums * static_cast<int64_t>(sizeof(float)))) {}

float* ColumnPartials::of(int sum, int64_t block) const {
  return memory_.as<float>() + (block * sums_ + sum) * columns_;
}

void ColumnPartials::clear(int64_t block) {
  std::fill_n(of(0, block), columns_ * sums_, 0.0f);
}

void ColumnPartials::add_to(Context& context, int sum, float* destination) {
  if (blocks_ == 0) return;
  const auto add = [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t stride = 1; stride < blocks_; stride *= 2) {
      for (int64_t block = 0; block + stride < blocks_; block += 2 * stride) {
        float* to = of(sum, block);
        const float* from = of(sum, block + stride);
        for (int64_t column = begin; column < end; ++column) to[column] += from[column];
      }
    }
    const float* total = of(sum, 0);
    for (int64_t column = begin; column < end; ++column) destination[column] += total[column];
  };
  for_parts(context, columns_, grain_for(blocks_), add);
}

}  // namespace onebit::kernels
