// The model that the tests of fine-tuning begin with.
#pragma once

#include <memory>

#include "tests/finetune/model_folders.h"

namespace onebit::finetune {

// Writes a BERT of random weights with a pooler and pre-training heads.
inline void write_untaught_bert(const Path& folder, int64_t positions = 128) {
  const auto vocabulary = std::make_shared<text::Vocabulary>(
      text::Vocabulary::load(Path(ONEBIT_SOURCE_DIR) / "tests/text/golden/vocab.txt"));
  write_model(folder,
              {.vocab_size = vocabulary->size(),
               .hidden_size = 32,
               .layers = 2,
               .heads = 2,
               .intermediate_size = 64,
               .max_positions = positions,
               .initializer_range = 0.1},
              vocabulary);
}

}  // namespace onebit::finetune
