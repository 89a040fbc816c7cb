// Tagged words: CoNLL, CoNLL-U and JSON lines. The first byte selects the format and the settings.
#include "onebit/apps/tag/sentence_reader.h"

#include <cstdlib>

#include "onebit/apps/tag/entities.h"
#include "onebit/apps/tag/scheme.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

namespace {

tag::FileLayout layout_of(uint8_t choice) {
  tag::FileLayout layout;
  constexpr tag::FileFormat kFormats[] = {tag::FileFormat::kConll, tag::FileFormat::kConllu,
                                          tag::FileFormat::kJsonLines};
  constexpr tag::Comments kComments[] = {tag::Comments::kAuto, tag::Comments::kYes,
                                         tag::Comments::kNo};
  layout.format = kFormats[choice % 3];
  layout.comments = kComments[choice / 3 % 3];
  if (choice / 9 % 2 == 1) layout.scheme = tag::Scheme::kIobes;
  if (choice / 18 % 2 == 1) layout.tags = "2";
  if (choice / 36 % 2 == 1) layout.left_out = corpus::LeftOut::kBad;
  return layout;
}

void expect_sound(const tag::Sentences& sentences) {
  for (const tag::Sentence& sentence : sentences.all) {
    if (sentence.tags.size() != sentence.words.size()) std::abort();
    uint32_t last = 0;
    for (const tag::Word& word : sentence.words) {
      if (word.begin < last || word.end <= word.begin) std::abort();
      if (word.end > sentence.text.size()) std::abort();
      last = word.end;
    }
    for (const tag::Entity& entity : tag::entities_of(sentence.tags)) {
      if (entity.last < entity.first || entity.last >= sentence.words.size()) std::abort();
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return -1;
  expect_error_at_most([&] {
    const MemoryFile file(text_of(data, size).substr(1));
    const tag::Sentences sentences = tag::read_sentences(file.path(), layout_of(data[0]));
    expect_sound(sentences);
    tag::find_scheme(sentences);
  });
  return 0;
}
