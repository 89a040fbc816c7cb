// JSON as other programs write it into data files. What the stricter parser reads, this one reads
// as the same value.
#include "onebit/data/corpus/data_json.h"

#include <cstdlib>

#include "onebit/ground/base/json.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = text_of(data, size);
  expect_error_at_most([&] { corpus::parse_data_json(text, "input.jsonl"); });
  expect_error_at_most([&] {
    const Json strict = parse_json(text, "input.json");
    try {
      if (corpus::parse_data_json(text, "input.jsonl") != strict) std::abort();
    } catch (const Error&) {
      std::abort();
    }
  });
  return 0;
}
