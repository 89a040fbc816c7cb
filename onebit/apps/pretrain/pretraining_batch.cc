#include "onebit/apps/pretrain/pretraining_batch.h"

namespace onebit::pretrain {

model::DeviceBatch upload(Context& context, training::DeviceBatchBuffer& buffer,
                          const batches::Batch& batch) {
  using model::DeviceBatch;
  return buffer.upload(context, batch,
                       {{&DeviceBatch::masked_rows, batch.masked_rows},
                        {&DeviceBatch::masked_targets, batch.masked_targets},
                        {&DeviceBatch::next_sentence, batch.next_sentence}});
}

}  // namespace onebit::pretrain
