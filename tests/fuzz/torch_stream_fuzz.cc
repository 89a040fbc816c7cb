// A file of torch.save as it was before 1.6: a stream of pickles and storages.
#include "onebit/data/formats/torch_file.h"
#include "tests/fuzz/read_tensors.h"

using namespace onebit;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!formats::TorchFile::is_stream(bytes_of(data, size))) return -1;
  expect_error_at_most([&] {
    const MemoryFile file(text_of(data, size));
    formats::read_tensors(std::make_shared<formats::TorchFile>(file.path()));
  });
  return 0;
}
