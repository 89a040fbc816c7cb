// A safetensors file: its header, every tensor, its checksum.
#include "onebit/data/formats/safetensors.h"
#include "tests/fuzz/read_tensors.h"

using namespace onebit;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  expect_error_at_most([&] {
    const MemoryFile file(text_of(data, size));
    const auto tensors = std::make_shared<formats::SafetensorsFile>(file.path());
    formats::read_tensors(tensors);
    tensors->verify_checksum();
  });
  return 0;
}
