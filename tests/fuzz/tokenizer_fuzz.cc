// The files of a tokenizer in one folder. What onebit writes of a tokenizer that it has read must
// be read as the same one.
#include "onebit/data/tokenizer_files/tokenizer_files.h"

#include <cstdlib>

#include "onebit/data/text/tokenizer.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

namespace {

constexpr const char* kFiles[] = {"vocab.txt", "tokenizer.json", "tokenizer_config.json",
                                  "special_tokens_map.json", "added_tokens.json"};
constexpr const char* kText = "The [MASK] a b\u0301 covid19[E] \u5317\u4eac, \u200d x_[e] .";

void expect_same(const formats::TokenizerFiles& files, const text::Vocabulary& vocabulary) {
  static const MemoryFolder written;
  for (const char* name : kFiles) std::filesystem::remove(written.path() / name);
  for (const auto& [name, text] : formats::tokenizer_files(files)) written.write(name, text);
  try {
    const formats::TokenizerFiles again = formats::read_tokenizer(written.path());
    const auto same = text::Vocabulary::from_parts(again.vocabulary, "written");
    if (again.config != files.config || same.parts() != vocabulary.parts()) std::abort();
  } catch (const Error&) {
    std::abort();
  }
}

void tokenize(const formats::TokenizerFiles& files, text::Vocabulary vocabulary) {
  text::Tokenizer tokenizer(std::make_shared<text::Vocabulary>(std::move(vocabulary)),
                            formats::casing_of(*files.config, "folder"));
  std::vector<int32_t> ids;
  std::vector<text::Piece> pieces;
  tokenizer.encode(kText, ids);
  tokenizer.encode_with_offsets(kText, pieces);
  if (ids.size() != pieces.size()) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFolder folder;
  folder.write_parts(kFiles, text_of(data, size));
  expect_error_at_most([&] {
    const formats::TokenizerFiles files = formats::read_tokenizer(folder.path());
    const auto vocabulary = text::Vocabulary::from_parts(files.vocabulary, "folder");
    if (!files.config) return;
    expect_same(files, vocabulary);
    tokenize(files, vocabulary);
  });
  return 0;
}
