// The files that sentence-transformers writes beside a model.
#include "onebit/data/formats/sentence_files.h"

#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

namespace {

constexpr const char* kFiles[] = {"modules.json",
                                  "1_Pooling/config.json",
                                  "sentence_bert_config.json",
                                  "config_sentence_transformers.json",
                                  "tokenizer_config.json",
                                  "2_Dense/config.json"};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFolder folder;
  folder.write_parts(kFiles, text_of(data, size));
  expect_error_at_most([&] { formats::sentence_encoder_in(folder.path()); });
  expect_error_at_most([&] { formats::read_sentence_files(folder.path()); });
  return 0;
}
