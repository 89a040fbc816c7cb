// A TFRecord file of BERT examples. Records have checksums that mutations break, so most inputs are
// only the message inside a file: the first byte selects this, and the target adds the record.
#include "onebit/data/samples/tfrecord_reader.h"

#include <string>

#include "onebit/data/samples/sample.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/samples/record_file.h"

using namespace onebit;

namespace {

const text::Vocabulary& vocabulary() {
  static const text::Vocabulary made = [] {
    std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (int id = 5; id < 60; ++id) tokens.push_back("w" + std::to_string(id));
    return text::Vocabulary::from_tokens(tokens, "vocabulary");
  }();
  return made;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return -1;
  const std::string rest(text_of(data, size).substr(1));
  expect_error_at_most([&] {
    const MemoryFile file(data[0] == 'f' ? rest : samples::record_of(rest));
    const auto reader = samples::open_tfrecord(file.path());
    samples::SampleChecker checker(vocabulary(), "vocabulary");
    samples::PaddedSample padded;
    samples::Sample sample;
    while (reader->read(padded)) {
      expect_error_at_most([&] { checker.take(padded, sample); });
    }
    checker.finish();
  });
  return 0;
}
