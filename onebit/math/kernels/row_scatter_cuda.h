// Sums rows by id on a CUDA device, in row order: the gradient of an embedding table.
#pragma once

#include <cstdint>

#include "onebit/math/device/cuda_stream.h"

namespace onebit::kernels::cuda {

// to[ids[row]] += from[row] for all rows, each row of `to` in the order of the rows of `from`. Ids
// outside [0, id_count) are skipped.
struct ScatterById {
  const float* from;   // [rows, columns]
  const int32_t* ids;  // [rows]
  int64_t rows, columns;
  float* to;  // [id_count, columns]  added to
  int64_t id_count;
  int ids_per_block;  // at most 32, fewer if an id has many rows
};
void scatter_by_id(CudaStream& cuda, const ScatterById& call);

}  // namespace onebit::kernels::cuda
