// A pickle by itself.
#include "onebit/data/formats/unpickler.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  expect_error_at_most([&] { formats::Unpickler(bytes_of(data, size), "input.pkl", 0).run(); });
  return 0;
}
