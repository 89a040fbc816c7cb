#include "onebit/ground/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

using ::testing::HasSubstr;

TEST(RegularFile, DevicesAndPipesAreRefused) {
  TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/zero", folder / "config.json");
  ASSERT_EQ(::mkfifo((folder / "vocab.txt").c_str(), 0600), 0);
  EXPECT_THAT(message_of([&] { read_json(folder / "config.json"); }),
              HasSubstr("config.json: is a link to a device, a file was expected"));
  EXPECT_THAT(message_of([&] { read_regular_file(folder / "vocab.txt", 9); }),
              HasSubstr("vocab.txt: is a pipe, a file was expected"));
  EXPECT_THAT(message_of([&] { MappedFile(folder / "vocab.txt"); }), HasSubstr("is a pipe"));
}

TEST(RegularFile, SizesAreLimited) {
  TemporaryFolder folder;
  write_file_atomically(folder / "a", "1234");
  std::filesystem::create_symlink(folder / "a", folder / "link");
  EXPECT_EQ(read_regular_file(folder / "link", 4), "1234");
  EXPECT_THAT(message_of([&] { read_regular_file(folder / "a", 3); }),
              HasSubstr("a: has 4 bytes, at most 3 were expected"));
  EXPECT_THAT(message_of([&] { read_regular_file(folder / "none", 3); }), HasSubstr("cannot open"));
  EXPECT_THAT(message_of([&] { read_regular_file(folder.path(), 3); }), HasSubstr("is a folder"));
}

// Models' repositories that were cloned without Git LFS.
TEST(RegularFile, APointerOfGitLfsIsRefusedByName) {
  TemporaryFolder folder;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\n"
      "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
  write_file_atomically(folder / "model.safetensors", pointer);
  const auto says_so = HasSubstr(
      "model.safetensors: is a Git LFS pointer, not the file itself: run `git lfs pull` in its "
      "repository");
  EXPECT_THAT(message_of([&] { MappedFile(folder / "model.safetensors"); }), says_so);
  EXPECT_THAT(message_of([&] { read_regular_file(folder / "model.safetensors", 1 << 20); }),
              says_so);
  EXPECT_THAT(message_of([&] { read_json(folder / "model.safetensors"); }), says_so);
  EXPECT_THAT(message_of([&] {
                read_given_file(folder / "model.safetensors", {"it", 1 << 20});
              }),
              says_so);
  // A file that only begins like one is read.
  write_file_atomically(folder / "text", pointer + std::string(1024, 'a'));
  EXPECT_EQ(MappedFile(folder / "text").bytes().size(), pointer.size() + 1024);
}

}  // namespace
}  // namespace onebit
