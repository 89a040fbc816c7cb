// Compares with goldens of Hugging Face's `tokenizers`, which tools/make_tokenizer_golden.py wrote.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "onebit/data/text/tokenizer.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"

namespace onebit::text {
namespace {

const Path kGolden = Path(ONEBIT_SOURCE_DIR) / "tests/text/golden";

Tokenizer golden_tokenizer(Casing casing) {
  return Tokenizer(std::make_shared<const Vocabulary>(Vocabulary::load(kGolden / "vocab.txt")),
                   casing);
}

class TokenizerGolden : public testing::TestWithParam<Casing> {};

TEST_P(TokenizerGolden, EqualsTheLibraryLineByLine) {
  Tokenizer tokenizer = golden_tokenizer(GetParam());
  const Json golden = read_json(kGolden / "lines.json");
  ASSERT_GT(golden["lines"].size(), 100u);
  for (const Json& line : golden["lines"]) {
    const std::string text = line["text"].get<std::string>();
    std::vector<Piece> pieces;
    std::vector<int32_t> ids, piece_ids;
    tokenizer.encode_with_offsets(text, pieces);
    tokenizer.encode(text, ids);
    std::string listed;
    for (const Piece& piece : pieces) {
      listed +=
          fmt::format("{}{}:{}:{}", listed.empty() ? "" : " ", piece.id, piece.begin, piece.end);
      piece_ids.push_back(piece.id);
    }
    EXPECT_EQ(listed, line[name_of(GetParam())].get<std::string>()) << text;
    EXPECT_EQ(ids, piece_ids) << text;
  }
}

uint64_t fnv1a64(uint64_t digest, uint32_t number) {
  for (int i = 0; i < 4; ++i) digest = (digest ^ ((number >> (8 * i)) & 0xFF)) * 0x100000001B3u;
  return digest;
}

// Whole paragraphs of prose, with numbers, quotation marks, capitals and rare words.
TEST_P(TokenizerGolden, EqualsTheLibraryOnTheLicense) {
  Tokenizer tokenizer = golden_tokenizer(GetParam());
  const std::string text = read_file(Path(ONEBIT_SOURCE_DIR) / "LICENSE");
  std::vector<Piece> pieces;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find("\n\n", begin), text.size());
    tokenizer.encode_with_offsets(std::string_view(text).substr(begin, end - begin), pieces);
    begin = end + 2;
  }
  uint64_t digest = 0xCBF29CE484222325u;
  for (const Piece& piece : pieces) {
    digest = fnv1a64(digest, static_cast<uint32_t>(piece.id));
    digest = fnv1a64(fnv1a64(digest, piece.begin), piece.end);
  }
  const Json golden = read_json(kGolden / "lines.json")["license"][name_of(GetParam())];
  EXPECT_EQ(pieces.size(), golden["tokens"].get<size_t>());
  EXPECT_EQ(fmt::format("{:016x}", digest), golden["digest"].get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Casings, TokenizerGolden,
                         testing::Values(Casing::kUncased, Casing::kCased),
                         [](const auto& chosen) { return name_of(chosen.param); });

}  // namespace
}  // namespace onebit::text
