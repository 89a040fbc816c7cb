// Texts in TSV, CSV and JSON lines, as classify and embed read them. The first byte selects the
// format and the settings.
#include "onebit/training/finetune/example_reader.h"

#include <cstdlib>

#include "onebit/apps/embed/example_reader.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return -1;
  constexpr finetune::FileFormat kFormats[] = {
      finetune::FileFormat::kTsv, finetune::FileFormat::kCsv, finetune::FileFormat::kJsonLines};
  const uint8_t choice = data[0];
  finetune::FileLayout texts = {.format = kFormats[choice % 3]};
  embed::FileLayout pairs;
  pairs.format = texts.format;
  if (choice / 3 % 2 == 1) texts.columns = {.text = "1", .label = "2"};
  if (choice / 3 % 2 == 1) pairs.columns = {.anchor = "1", .positive = "2"};
  if (choice / 6 % 2 == 1) texts.left_out = pairs.left_out = corpus::LeftOut::kBad;
  if (choice / 12 % 2 == 1) texts.fill_short = true;
  const MemoryFile file(text_of(data, size).substr(1));
  expect_error_at_most([&] {
    if (finetune::read_examples(file.path(), texts).all.empty()) std::abort();
  });
  expect_error_at_most([&] {
    const embed::Examples examples = embed::read_examples(file.path(), pairs);
    if (examples.texts.all.size() % static_cast<size_t>(examples.parts()) != 0) std::abort();
  });
  return 0;
}
