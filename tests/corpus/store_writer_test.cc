#include "onebit/data/corpus/store_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/corpus/token_store.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"

namespace onebit::corpus {
namespace {

using testing::HasSubstr;

TEST(StoreWriter, LeavesNothingUnlessFinished) {
  const TemporaryFolder folder;
  {
    StoreWriter writer(folder / "store", false);
    writer.set_vocabulary(sample_vocabulary(20), text::Casing::kUncased);
    EXPECT_TRUE(std::filesystem::exists(folder / "store.partial"));
  }
  EXPECT_EQ(folder.entries(), 0);
}

TEST(StoreWriter, ClearsWhatAKilledRunLeft) {
  const TemporaryFolder folder;
  const Path partial = folder / "store.partial";
  std::string lock;
  {
    const StoreWriter killed(folder / "store", false);
    lock = read_file(partial / "lock");
  }
  std::filesystem::create_directory(partial);
  write_file_atomically(partial / "rubbish", "x");
  write_file_atomically(partial / "lock", lock);
  make_store(folder / "store", {{2}});
  EXPECT_FALSE(std::filesystem::exists(folder / "store" / "rubbish"));
  EXPECT_EQ(folder.entries(), 1);
}

TEST(StoreWriter, ReplacesAStoreOnlyOnRequest) {
  const TemporaryFolder folder;
  make_store(folder / "store", {{2}});
  EXPECT_THAT(message_of([&] { StoreWriter(folder / "store", false); }), HasSubstr("--overwrite"));
  { StoreWriter abandoned(folder / "store", true); }
  EXPECT_EQ(TokenStore(folder / "store").tokens(), 2u);
  std::filesystem::create_directory(folder / "mine");
  write_file_atomically(folder / "mine" / "thesis.txt", "x");
  EXPECT_THAT(message_of([&] { StoreWriter(folder / "mine", true); }),
              HasSubstr("is not a onebit store: choose another"));
  EXPECT_TRUE(std::filesystem::exists(folder / "mine" / "thesis.txt"));
}

// Documents that are already written cannot be dropped.
TEST(StoreWriter, KeepsDuplicatesThatAreTooLongToHold) {
  const TemporaryFolder folder;
  StoreWriter writer(folder / "store", false);
  writer.drop_duplicates();
  writer.set_vocabulary(sample_vocabulary(20), text::Casing::kUncased);
  const std::vector<int32_t> sentence(size_t{1} << 20, 8);
  const size_t sentences = StoreWriter::kMaxHeldBytes / (2 * sentence.size()) + 1;
  const auto add = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      TokenizedBlock block(writer.token_size_bytes(), 0);
      block.add_sentence(sentence);
      if (i + 1 == count) block.end_document();
      block.close();
      writer.add(block);
    }
  };
  for (const size_t count : {sentences, sentences, size_t{2}, size_t{2}}) add(count);
  const StoreManifest manifest = writer.finish(0, "sample", {"sample"});
  EXPECT_EQ(manifest.documents, 3u);
  EXPECT_EQ(manifest.duplicate_documents, 1u);
  EXPECT_EQ(manifest.sentences, 2 * sentences + 2);
  EXPECT_EQ(writer.duplicate_tokens(), 2 * sentence.size());
  TokenStore(folder / "store").verify();
}

}  // namespace
}  // namespace onebit::corpus
