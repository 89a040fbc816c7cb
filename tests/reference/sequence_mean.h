#pragma once

#include <vector>

#include "tests/reference/matrix.h"

namespace onebit::reference {

// The mean of the rows [starts[s], starts[s + 1]) of x for each s.
inline Matrix sequence_mean(const Matrix& x, const std::vector<int32_t>& starts) {
  const auto sequences = static_cast<int64_t>(starts.size()) - 1;
  Matrix means(sequences, x.columns);
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t first = starts[static_cast<size_t>(s)], end = starts[static_cast<size_t>(s) + 1];
    for (int64_t j = 0; j < x.columns; ++j) {
      double sum = 0;
      for (int64_t row = first; row < end; ++row) sum += x(row, j);
      means(s, j) = sum / static_cast<double>(end - first);
    }
  }
  return means;
}

}  // namespace onebit::reference
