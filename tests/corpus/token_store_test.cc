#include "onebit/data/corpus/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"

namespace onebit::corpus {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TokenStoreTest : public ::testing::Test {
 protected:
  TokenStoreTest()
      : path_(folder_ / "store"), store_(make_store(path_, {{3, 2}, {1}, {4, 1, 5}})) {}

  // The message when the store is opened after `edit` changed the bytes of `name`.
  template <typename Edit>
  std::string after(const std::string& name, const Edit& edit) {
    const std::string before = read_file(path_ / name);
    std::string bytes = before;
    edit(bytes);
    write_file_atomically(path_ / name, bytes);
    const std::string message = message_of([&] { TokenStore store(path_); });
    write_file_atomically(path_ / name, before);
    return message;
  }
  std::string after_replacing(const std::string& from, const std::string& to) {
    return after(kManifestName, [&](std::string& text) {
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    });
  }

  TemporaryFolder folder_;
  Path path_;
  std::shared_ptr<const TokenStore> store_;
};

TEST_F(TokenStoreTest, GivesBackWhatWasWritten) {
  EXPECT_EQ(store_->documents(), 3u);
  EXPECT_EQ(store_->sentences(), 6u);
  EXPECT_EQ(store_->tokens(), 16u);
  EXPECT_THAT(store_->sentence_offsets(), testing::ElementsAre(0, 3, 5, 6, 10, 11, 16));
  const std::vector<uint64_t> first_sentences{0, 2, 3, 6};
  for (size_t i = 0; i < first_sentences.size(); ++i) {
    EXPECT_EQ(store_->document_begin(i), first_sentences[i]);
  }
  for (const auto& [sentence, document] : {std::pair{0, 0}, {1, 0}, {2, 1}, {3, 2}, {5, 2}}) {
    EXPECT_EQ(store_->document_of(static_cast<uint64_t>(sentence)),
              static_cast<uint64_t>(document));
  }
  std::vector<int32_t> ids(16);
  store_->copy_tokens(0, 16, ids.data());
  for (int32_t i = 0; i < 16; ++i) EXPECT_EQ(ids[static_cast<size_t>(i)], kFirstWord + i);
  store_->copy_tokens(9, 2, ids.data());
  EXPECT_EQ(ids[0], kFirstWord + 9);
  EXPECT_EQ(store_->vocabulary()->size(), kFirstWord + 16);
  EXPECT_TRUE(is_token_store(path_));
  store_->verify();
}

TEST_F(TokenStoreTest, UsesTwoBytesUpToALimitAndFourBeyond) {
  const auto wide = make_store(folder_ / "wide", {{5, 5}}, 65537);
  EXPECT_EQ(wide->manifest().token_size_bytes, 4);
  EXPECT_EQ(make_store(folder_ / "short", {{5, 5}}, 65536)->manifest().token_size_bytes, 2);
  std::vector<int32_t> ids(10);
  wide->copy_tokens(0, 10, ids.data());
  EXPECT_EQ(ids[9], kFirstWord + 9);
  wide->verify();
}

TEST_F(TokenStoreTest, RefusesWhatIsNoStore) {
  EXPECT_THAT(message_of([&] { TokenStore store(folder_ / "nowhere"); }),
              AllOf(HasSubstr("nowhere"), HasSubstr("no such token store")));
  EXPECT_THAT(message_of([&] { TokenStore store(folder_.path()); }),
              HasSubstr("is not a token store"));
  std::filesystem::create_directory(folder_ / "x.partial");
  EXPECT_THAT(message_of([&] { TokenStore store(folder_ / "x.partial"); }),
              HasSubstr("is an unfinished token store"));
  EXPECT_FALSE(is_token_store(folder_.path()));
  write_file_atomically(folder_ / "manifest.json", "{\"format\": \"other\"}");
  EXPECT_THAT(message_of([&] { TokenStore store(folder_.path()); }),
              HasSubstr("is not the manifest of a token store"));
}

TEST_F(TokenStoreTest, NoticesFilesCutShortOrGrown) {
  for (const char* name : {kTokensName, kSentencesName, kDocumentsName}) {
    EXPECT_THAT(after(name, [](std::string& bytes) { bytes.pop_back(); }),
                AllOf(HasSubstr(name), HasSubstr("truncated")));
    EXPECT_THAT(after(name, [](std::string& bytes) { bytes.clear(); }), HasSubstr("truncated"));
    EXPECT_THAT(after(name, [](std::string& bytes) { bytes.append(8, 'x'); }),
                HasSubstr("truncated or modified"));
  }
}

TEST_F(TokenStoreTest, NoticesMissingFiles) {
  for (const char* name : {kTokensName, kSentencesName, kDocumentsName, kVocabularyName}) {
    std::filesystem::rename(path_ / name, folder_ / "away");
    EXPECT_THAT(message_of([&] { TokenStore store(path_); }), HasSubstr(name));
    std::filesystem::rename(folder_ / "away", path_ / name);
  }
}

// Nobody writes into the pipe: opening it would wait for ever.
TEST_F(TokenStoreTest, RefusesPipes) {
  for (const char* name :
       {kManifestName, kTokensName, kSentencesName, kDocumentsName, kVocabularyName}) {
    std::filesystem::rename(path_ / name, folder_ / "away");
    ASSERT_EQ(::mkfifo((path_ / name).c_str(), 0600), 0);
    EXPECT_THAT(message_of([&] { TokenStore store(path_); }),
                AllOf(HasSubstr(name), HasSubstr("is a pipe")));
    std::filesystem::rename(folder_ / "away", path_ / name);
  }
}

TEST_F(TokenStoreTest, NoticesAForeignVocabulary) {
  EXPECT_THAT(after(kVocabularyName, [](std::string& text) { text += "more\n"; }),
              AllOf(HasSubstr("vocab.txt"), HasSubstr("is not the vocabulary (23 tokens)")));
  EXPECT_THAT(
      after(kVocabularyName, [](std::string& text) { text.replace(text.size() - 4, 3, "zzz"); }),
      HasSubstr("is not the vocabulary"));
}

TEST_F(TokenStoreTest, NoticesOffsetsOutOfOrder) {
  for (const char* name : {kSentencesName, kDocumentsName}) {
    for (const size_t at : {size_t{0}, size_t{8}, size_t{15}}) {
      EXPECT_THAT(after(name, [at](std::string& bytes) { bytes[at] = '\x7f'; }),
                  AllOf(HasSubstr(name), HasSubstr("out of order")));
    }
    EXPECT_THAT(after(name, [](std::string& bytes) { bytes[8] = 0; }), HasSubstr("out of order"));
  }
}

TEST_F(TokenStoreTest, NoticesTokensOutsideTheVocabulary) {
  std::string bytes = read_file(path_ / kTokensName);
  bytes[7] = '\x7f';
  write_file_atomically(path_ / kTokensName, bytes);
  const TokenStore damaged(path_);
  std::vector<int32_t> ids(16);
  damaged.copy_tokens(4, 12, ids.data());
  EXPECT_THAT(message_of([&] { damaged.copy_tokens(0, 16, ids.data()); }),
              AllOf(HasSubstr("tokens.bin"), HasSubstr("outside the vocabulary of 23")));
}

TEST_F(TokenStoreTest, VerifyFindsASingleChangedBit) {
  for (const char* name : {kTokensName, kSentencesName, kDocumentsName, kVocabularyName}) {
    const std::string before = read_file(path_ / name);
    std::string bytes = before;
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write_file_atomically(path_ / name, bytes);
    EXPECT_THAT(message_of([&] { store_->verify(); }),
                AllOf(HasSubstr(name), HasSubstr("its checksum is")));
    write_file_atomically(path_ / name, before);
  }
  store_->verify();
}

TEST_F(TokenStoreTest, NoticesManifestsThatCannotBeRight) {
  EXPECT_THAT(after_replacing("\"version\": 1", "\"version\": 2"),
              AllOf(HasSubstr("version 2"), HasSubstr("version 1")));
  EXPECT_THAT(after_replacing("\"u16\"", "\"u17\""), HasSubstr("token_type"));
  EXPECT_THAT(after_replacing("\"u16\"", "\"u32\""), HasSubstr("tokens.bin"));
  EXPECT_THAT(after_replacing("\"tokens\": 16", "\"tokens\": -16"), HasSubstr("tokens"));
  EXPECT_THAT(after_replacing("\"tokens\": 16", "\"tokens\": 17"), HasSubstr("truncated"));
  EXPECT_THAT(after_replacing("\"tokens\": 16", "\"tokens\": 9223372036854775807"),
              HasSubstr("its counts are invalid"));
  EXPECT_THAT(after_replacing("\"sentences\": 6", "\"sentences\": 0"), HasSubstr("no sentence"));
  EXPECT_THAT(after_replacing("\"casing\"", "\"caking\""), HasSubstr("casing"));
  EXPECT_THAT(after_replacing("\"crc32\": \"", "\"crc32\": \"x"),
              HasSubstr("8 hexadecimal digits"));
  EXPECT_THAT(after_replacing("\"sources\": [", "\"sources\": [1, "), HasSubstr("sources"));
  EXPECT_THAT(after_replacing("{", "["), HasSubstr(kManifestName));
}

}  // namespace
}  // namespace onebit::corpus
