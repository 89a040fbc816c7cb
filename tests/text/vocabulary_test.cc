#include "onebit/data/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/error.h"
#include "tests/text/small_vocabulary.h"

namespace onebit::text {
namespace {

using testing::HasSubstr;

class VocabularyFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = Path(testing::TempDir()) /
            (std::string("vocab_") + testing::UnitTest::GetInstance()->current_test_info()->name() +
             ".txt");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string error_of(std::string_view content) {
    write_file_atomically(path_, content);
    try {
      Vocabulary::load(path_);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(path_.string()));
      return error.what();
    }
    return "no error";
  }

  Path path_;
};

constexpr std::string_view kSpecials = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";

TEST_F(VocabularyFile, SavesWhatItLoads) {
  const std::string content = std::string(kSpecials) + "the\n##ing\n\u00e9\n";
  write_file_atomically(path_, content);
  const Vocabulary vocabulary = Vocabulary::load(path_);
  EXPECT_EQ(vocabulary.size(), 8);
  EXPECT_EQ(vocabulary.token(6), "##ing");
  EXPECT_EQ(vocabulary.find("the"), 5);
  EXPECT_EQ(vocabulary.find("ing"), std::nullopt);
  EXPECT_EQ(vocabulary.pad_id(), 0);
  EXPECT_EQ(vocabulary.unknown_id(), 1);
  EXPECT_EQ(vocabulary.cls_id(), 2);
  EXPECT_EQ(vocabulary.sep_id(), 3);
  EXPECT_EQ(vocabulary.mask_id(), 4);
  EXPECT_TRUE(vocabulary.is_continuation(6));
  EXPECT_FALSE(vocabulary.is_continuation(5));
  vocabulary.save(path_);
  EXPECT_EQ(read_file(path_), content);
}

TEST_F(VocabularyFile, TakesForeignLineEnds) {
  write_file_atomically(path_, "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nthe");
  EXPECT_EQ(Vocabulary::load(path_).find("the"), 5);
}

TEST_F(VocabularyFile, RefusesWhatIsNoVocabulary) {
  EXPECT_THAT(error_of(""), HasSubstr("no tokens"));
  EXPECT_THAT(error_of("\xEF\xBB\xBF" + std::string(kSpecials)),
              HasSubstr(":1: begins with a byte"));
  EXPECT_THAT(error_of(std::string(kSpecials) + "a\nb\xFF\n"), HasSubstr(":7: not UTF-8"));
}

// As transformers reads it: every line keeps its id, and the last of a repeated token is found.
TEST_F(VocabularyFile, KeepsTheIdsOfRepeatedAndEmptyLines) {
  const std::string content = std::string(kSpecials) + "a\n\nb\na\n\nc\n";
  write_file_atomically(path_, content);
  const Vocabulary vocabulary = Vocabulary::load(path_);
  EXPECT_EQ(vocabulary.size(), 11);
  EXPECT_EQ(vocabulary.find("a"), 8);
  EXPECT_EQ(vocabulary.find("b"), 7);
  EXPECT_EQ(vocabulary.find("c"), 10);
  EXPECT_EQ(vocabulary.find(""), std::nullopt);
  vocabulary.save(path_);
  EXPECT_EQ(read_file(path_), content);
}

// As the WordPiece of `tokenizers` reads a file, which is what transformers 5 uses: white space at
// the end of a line is none of the token's, and other white space is.
TEST_F(VocabularyFile, TrimsWhiteSpaceAtTheEndOfALine) {
  write_file_atomically(
      path_,
      std::string(kSpecials) + "a\na\u00a0\n##b\u3000\t \n\u00a0c\nd\u2028e\nf\u200b\n\u2003\n");
  const Vocabulary vocabulary = Vocabulary::load(path_);
  EXPECT_EQ(vocabulary.size(), 12);
  EXPECT_EQ(vocabulary.find("a"), 6);
  EXPECT_EQ(vocabulary.find("##b"), 7);
  EXPECT_EQ(vocabulary.find("c"), std::nullopt);
  EXPECT_EQ(vocabulary.find("\u00a0c"), 8);
  EXPECT_EQ(vocabulary.find("d\u2028e"), 9);
  EXPECT_EQ(vocabulary.find("f\u200b"), 10);
  EXPECT_EQ(vocabulary.token(11), "");
}

// Tokens of a tokenizer.json may end with white space. A file that onebit saved keeps it.
TEST_F(VocabularyFile, SavedTokensKeepTheirWhiteSpace) {
  const std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]",   "[SEP]", "[MASK]",
                                           "a",     "a ",    "a\u00a0", "",      "b\r"};
  Vocabulary::from_tokens(tokens, "tokens").save(path_);
  EXPECT_EQ(read_saved_tokens(path_), tokens);
  const auto with_line_end = [] {
    Vocabulary::from_tokens({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a\nb"}, "tokens");
  };
  EXPECT_THAT([&] { with_line_end(); }, testing::ThrowsMessage<Error>(HasSubstr(
                                            "tokens: the token \"a\\x0ab\" (id 5) contains "
                                            "a line end")));
}

TEST(Vocabulary, AddedTokensFollowTheModels) {
  const VocabularyParts parts{
      .tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"},
      .added = {{.id = 7, .content = "##x", .normalized = true}, {.id = 5, .content = "a"}}};
  const Vocabulary vocabulary = Vocabulary::from_parts(parts, "parts");
  EXPECT_EQ(vocabulary.size(), 8);
  EXPECT_EQ(vocabulary.model_size(), 7);
  EXPECT_EQ(vocabulary.token(7), "##x");
  EXPECT_TRUE(vocabulary.is_continuation(6));
  EXPECT_FALSE(vocabulary.is_continuation(7));
  EXPECT_FALSE(vocabulary.is_plain());
  EXPECT_EQ(vocabulary.added().size(), 7u);  // the special ones as well
  EXPECT_EQ(Vocabulary::from_parts(vocabulary.parts(), "parts").checksum(), vocabulary.checksum());
  VocabularyParts stripped = parts;
  stripped.added[0].lstrip = true;
  EXPECT_NE(Vocabulary::from_parts(stripped, "parts").checksum(), vocabulary.checksum());
  // A plain vocabulary has the checksum of its tokens, which stores have recorded.
  EXPECT_EQ(Vocabulary::from_parts({.tokens = parts.tokens}, "parts").checksum(),
            Vocabulary::from_tokens(parts.tokens, "tokens").checksum());
}

TEST_F(VocabularyFile, NamesTheMissingSpecialToken) {
  for (const std::string missing : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    std::string content(kSpecials);
    content.replace(content.find(missing), missing.size(), "word");
    EXPECT_THAT(error_of(content), HasSubstr("no " + missing));
  }
}

TEST_F(VocabularyFile, MissingFileIsAnError) {
  EXPECT_THROW(Vocabulary::load(path_ / "nowhere"), Error);
}

TEST(Vocabulary, ChecksumDistinguishesLists) {
  const uint32_t sum = small_vocabulary({"ab", "c"})->checksum();
  EXPECT_EQ(sum, small_vocabulary({"ab", "c"})->checksum());
  EXPECT_NE(sum, small_vocabulary({"c", "ab"})->checksum());
  EXPECT_NE(sum, small_vocabulary({"a", "bc"})->checksum());
  EXPECT_NE(sum, small_vocabulary({"ab", "c", "d"})->checksum());
}

}  // namespace
}  // namespace onebit::text
