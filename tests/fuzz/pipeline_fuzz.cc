// A tokenizer.json of any kind, and a text that it tokenizes: both ways of encoding must agree, and
// offsets must be in the text.
#include "onebit/data/text/pipeline.h"

#include <cstdlib>
#include <optional>
#include <vector>

#include "onebit/data/text/tokenizer.h"
#include "onebit/data/tokenizer_files/tokenizer_json.h"
#include "onebit/ground/base/json.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

namespace {

text::Vocabulary vocabulary_of(formats::TokenizerJson json) {
  // Any token can have the roles that the file does not name.
  std::string token = "[UNK]";
  for (const std::string& word : json.vocabulary) {
    if (!word.empty()) token = word;
  }
  const std::string cls = json.cls_token.value_or(token), sep = json.sep_token.value_or(token);
  return text::Vocabulary::from_parts(
      {.tokens = std::move(json.vocabulary),
       .added = std::move(json.added),
       .names = {.unknown = token, .sep = sep, .pad = token, .cls = cls, .mask = token},
       .pipeline = json.pipeline,
       .pair = json.pair,
       .decoder = json.decoder},
      "input.json");
}

void tokenize(text::Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  std::vector<text::Piece> pieces;
  tokenizer.encode(text, ids);
  tokenizer.encode_with_offsets(text, pieces);
  if (ids.size() != pieces.size()) std::abort();
  for (size_t i = 0; i < ids.size(); ++i) {
    const text::Piece& piece = pieces[i];
    if (piece.id != ids[i] || ids[i] < 0 || ids[i] >= tokenizer.vocabulary().size()) std::abort();
    if (piece.begin > piece.end || piece.end > text.size()) std::abort();
  }
  for (const bool skips_special : {false, true}) {
    expect_error_at_most([&] { tokenizer.decode(ids, skips_special); });
  }
}

}  // namespace

// The text stands behind a zero byte.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = text_of(data, size);
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(std::min(end + 1, input.size()));
  expect_error_at_most([&] {
    formats::TokenizerJson json =
        formats::parse_tokenizer_json(parse_json(input.substr(0, end), "input.json"), "input.json");
    text::Tokenizer tokenizer(std::make_shared<text::Vocabulary>(vocabulary_of(std::move(json))),
                              text::Casing::kUncased);
    tokenize(tokenizer, text);
    tokenize(tokenizer, text);  // from its cache
  });
  return 0;
}
