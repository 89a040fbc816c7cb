// A block of snappy.
#include "onebit/data/formats/tensor_bundle.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  expect_error_at_most(
      [&] { formats::unpack_snappy(bytes_of(data, size), 1 << 20, "input.index", 0); });
  return 0;
}
