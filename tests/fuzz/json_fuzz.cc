// JSON itself and the readers of a model folder: config.json, tokenizer_config.json,
// tokenizer.json, the index of shards.
#include "onebit/ground/base/json.h"

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/tensor_source.h"
#include "onebit/data/tokenizer_files/tokenizer_config.h"
#include "onebit/data/tokenizer_files/tokenizer_json.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = text_of(data, size);
  expect_error_at_most([&] {
    const Json json = parse_json(text, "input.json");
    expect_error_at_most([&] {
      const auto config = formats::parse_encoder_config(json, "input.json");
      formats::encoder_config_text(config);
    });
    expect_error_at_most([&] { formats::parse_tokenizer_config(json, "input.json"); });
    expect_error_at_most([&] { formats::parse_tokenizer_json(json, "input.json"); });
    expect_error_at_most([&] { formats::parse_special_tokens_map(json, "input.json"); });
    const MemoryFile file(text);
    expect_error_at_most([&] { formats::open_sharded_safetensors(file.path()); });
  });
  return 0;
}
