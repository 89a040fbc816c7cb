#include "onebit/data/samples/padded_sample.h"

namespace onebit::samples {

void PaddedSample::clear() {
  for (auto* numbers :
       {&input_ids, &segment_ids, &input_mask, &masked_lm_positions, &masked_lm_ids}) {
    numbers->clear();
  }
  masked_lm_weights.clear();
  next_sentence.reset();
}

}  // namespace onebit::samples
