#include "onebit/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/base/error.h"
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
  EXPECT_THAT(error_of(std::string(kSpecials) + "a\n\nb\n"), HasSubstr(":7: empty line"));
  EXPECT_THAT(error_of(std::string(kSpecials) + "a\nb\na\n"),
              HasSubstr(":8: token 'a' is already in line 6"));
  EXPECT_THAT(error_of(std::string(kSpecials) + "a\nb\xFF\n"), HasSubstr(":7: not UTF-8"));
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
