#include "onebit/corpus/store_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/corpus/token_store.h"
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
  std::filesystem::create_directory(folder / "store.partial");
  write_file_atomically(folder / "store.partial" / "rubbish", "x");
  write_file_atomically(folder / "store.partial" / "lock", "");
  make_store(folder / "store", {{2}});
  EXPECT_FALSE(std::filesystem::exists(folder / "store" / "rubbish"));
  EXPECT_EQ(folder.entries(), 1);
}

TEST(StoreWriter, ReplacesAStoreOnlyWhenAsked) {
  const TemporaryFolder folder;
  make_store(folder / "store", {{2}});
  EXPECT_THAT(message_of([&] { StoreWriter(folder / "store", false); }), HasSubstr("--overwrite"));
  { StoreWriter abandoned(folder / "store", true); }
  EXPECT_EQ(TokenStore(folder / "store").tokens(), 2u);
  std::filesystem::create_directory(folder / "mine");
  write_file_atomically(folder / "mine" / "thesis.txt", "x");
  EXPECT_THAT(message_of([&] { StoreWriter(folder / "mine", true); }),
              HasSubstr("is not a token store: choose another"));
  EXPECT_TRUE(std::filesystem::exists(folder / "mine" / "thesis.txt"));
}

}  // namespace
}  // namespace onebit::corpus
