#include "onebit/math/model/classifier_dropout.h"

#include "onebit/math/ops/rows.h"

namespace onebit::model {

void ClassifierDropout::reserve(MemoryPlan& memory, int64_t rows) {
  row_keys_ = memory.reserve(MemoryKind::kHead, DType::kU64, {rows});
}

kernels::Dropout ClassifierDropout::of(Context& context, const DeviceBatch& batch, ConstView rows,
                                       const TrainingPass* pass) const {
  if (pass == nullptr || probability_ <= 0) return {};
  const View row_keys = rows_of(row_keys_, rows.elements());
  ops::gather_rows(context, {.x = batch.row_keys.reshaped({batch.rows(), 1}),
                             .indices = rows,
                             .y = row_keys.reshaped({rows.elements(), 1})});
  return {.probability = static_cast<float>(probability_),
          .seed = pass->dropout_seed,
          .site = dropout_site(0, DropoutPlace::kClassifier),
          .row_keys = row_keys};
}

}  // namespace onebit::model
