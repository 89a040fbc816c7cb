// Dropout before a classifier: the keys of its masks are the row keys of the rows that it reads.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/model/batch.h"
#include "onebit/math/model/memory_plan.h"
#include "onebit/math/model/training_pass.h"

namespace onebit::model {

class ClassifierDropout {
 public:
  explicit ClassifierDropout(double probability) : probability_(probability) {}

  // Reserves memory for training on up to `rows` rows.
  void reserve(MemoryPlan& memory, int64_t rows);
  // Dropout of the vectors that belong to `rows` (i32) of the batch; none if `pass` is null.
  kernels::Dropout of(Context& context, const DeviceBatch& batch, ConstView rows,
                      const TrainingPass* pass) const;

 private:
  double probability_;
  Tensor row_keys_;  // u64 [rows]
};

}  // namespace onebit::model
