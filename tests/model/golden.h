// Reads the goldens of tools/make_model_goldens.py: losses, gradients, batches of
// BertForPreTraining.
#pragma once

#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {

inline Path golden_folder() {
  return Path(ONEBIT_SOURCE_DIR) / "tests" / "model" / "golden";
}

inline TinyBatch batch_from(const Json& json) {
  TinyBatch batch;
  batch.tokens = json.at("tokens").get<std::vector<int32_t>>();
  batch.segments = json.at("segments").get<std::vector<int32_t>>();
  batch.starts = json.at("starts").get<std::vector<int32_t>>();
  batch.masked_rows = json.at("masked_rows").get<std::vector<int32_t>>();
  batch.masked_targets = json.at("masked_targets").get<std::vector<int32_t>>();
  batch.next_sentence = json.at("next_sentence").get<std::vector<int32_t>>();
  for (size_t s = 0; s + 1 < batch.starts.size(); ++s) {
    for (int32_t row = batch.starts[s]; row < batch.starts[s + 1]; ++row) {
      batch.positions.push_back(row - batch.starts[s]);
      batch.row_keys.push_back(static_cast<uint64_t>(row));
    }
  }
  return batch;
}

}  // namespace onebit::model
