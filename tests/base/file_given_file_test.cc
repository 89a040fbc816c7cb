#include "onebit/ground/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

using ::testing::HasSubstr;

constexpr FileKind kRecipe = {"a recipe", uint64_t{1} << 20};

TEST(GivenFile, DevicesWithoutAnEndAreRefused) {
  EXPECT_EQ(read_given_file("/dev/null", kRecipe), "");
  EXPECT_EQ(message_of([] { read_given_file("/dev/zero", kRecipe); }),
            "/dev/zero: has more than 1 MiB, the most that a recipe may have: is it another file?");
}

TEST(GivenFile, PipesAreReadToTheirEnd) {
  const TemporaryFolder folder;
  const Path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string content(200'000, 'x');
  std::thread writer([&] {
    FileWriter file(pipe, FileWriter::Kind::kExisting);
    file.write(content);
    file.finish();
  });
  EXPECT_EQ(read_given_file(pipe, kRecipe), content);
  writer.join();
}

TEST(GivenFile, TheLargestSizeIsThatOfItsKind) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "1234");
  EXPECT_EQ(read_given_file(folder / "a", {"a word", 4}), "1234");
  EXPECT_THAT(message_of([&] {
                read_given_file(folder / "a", {"a word", 3});
              }),
              HasSubstr("a: has more than 3 bytes, the most that a word may have"));
  // A hole takes no space on the disk: its size is known before it is read.
  write_file_atomically(folder / "hole", "");
  std::filesystem::resize_file(folder / "hole", uint64_t{10} << 30);
  EXPECT_THAT(message_of([&] { read_given_file(folder / "hole", kRecipe); }),
              HasSubstr("hole: has more than 1 MiB"));
  EXPECT_THAT(message_of([&] { read_given_file(folder.path(), kRecipe); }),
              HasSubstr("is a folder, a recipe was expected"));
  EXPECT_THAT(message_of([&] { read_given_file(folder / "none", kRecipe); }),
              HasSubstr("none: cannot open"));
}

}  // namespace
}  // namespace onebit
