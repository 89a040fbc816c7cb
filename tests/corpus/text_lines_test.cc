#include "onebit/data/corpus/text_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/text_files.h"

namespace onebit::corpus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> lines_of(const Path& path) {
  FileLines lines(path);
  std::vector<std::string> all;
  for (std::string line; lines.next(line);) {
    all.push_back(line);
    EXPECT_EQ(lines.number(), all.size());
  }
  return all;
}

TEST(FileLines, WithAndWithoutALastLineEnd) {
  const TextFiles files;
  EXPECT_THAT(lines_of(files.write("a", "one\ntwo\n")), ElementsAre("one", "two"));
  EXPECT_THAT(lines_of(files.write("b", "one\n\ntwo")), ElementsAre("one", "", "two"));
  EXPECT_THAT(lines_of(files.write("c", "")), ElementsAre());
  EXPECT_THAT(lines_of(files.write("d", "\n")), ElementsAre(""));
}

TEST(FileLines, AByteOrderMarkIsNoText) {
  const TextFiles files;
  EXPECT_THAT(lines_of(files.write("a", "\xEF\xBB\xBFQuality\n\xEF\xBB\xBF")),
              ElementsAre("Quality", "\xEF\xBB\xBF"));
}

TEST(FileLines, Utf16IsRefusedByName) {
  const TextFiles files;
  const Path path = files.write("wide.tsv", std::string("\xFF\xFEt\0\n\0", 6));
  EXPECT_THAT(message_of([&] { lines_of(path); }),
              HasSubstr("wide.tsv: is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"));
  for (const auto& [text, name] :
       {std::pair("t\0e\0x\0t\0", "UTF-16LE"), std::pair("\0t\0e\0x\0t", "UTF-16BE")}) {
    EXPECT_THAT(message_of([&, from = text] { refuse_utf16({from, 8}, "f"); }), HasSubstr(name));
  }
}

TEST(FileLines, APointerOfGitLfsIsRefusedByName) {
  const TextFiles files;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 231508\n";
  const Path path = files.write("train.tsv", pointer);
  EXPECT_THAT(message_of([&] { lines_of(path); }),
              HasSubstr("train.tsv: is a Git LFS pointer, not the file itself"));
  EXPECT_EQ(lines_of(files.write("long", pointer + std::string(1024, 'a'))).size(), 4u);
}

TEST(FileLines, CarriageReturnsAloneEndNoLine) {
  const TextFiles files;
  const Path path = files.write("old.tsv", "text\tlabel\ra\tx\r");
  EXPECT_THAT(
      message_of([&] { lines_of(path); }),
      HasSubstr("old.tsv: its lines end in carriage returns (CR) alone: convert it with tr"));
  EXPECT_THAT(lines_of(files.write("a", "one\r\ntwo\rhalf\r\n")),
              ElementsAre("one\r", "two\rhalf\r"));
  EXPECT_THAT(lines_of(files.write("b", "one\r")), ElementsAre("one\r"));
  EXPECT_THAT(lines_of(files.write("c", "10 %\r20 %\n")), ElementsAre("10 %\r20 %"));
}

// Lines that cross the blocks in which a file is read.
TEST(FileLines, AFileThatIsShortenedWhileItIsReadIsAnError) {
  const TextFiles files;
  std::string text;
  while (text.size() < (size_t{8} << 20)) text += "a line of some text\n";
  for (const uint64_t left : {uint64_t{0}, uint64_t{100}, uint64_t{5} << 20}) {
    const Path path = files.write("a.txt", text);
    FileLines lines(path);
    std::string line;
    ASSERT_TRUE(lines.next(line));
    std::filesystem::resize_file(path, left);
    EXPECT_THAT(message_of([&] {
                  while (lines.next(line)) {
                  }
                }),
                HasSubstr(fmt::format("a.txt: was shortened while it was read: it had {} bytes",
                                      text.size())))
        << left;
  }
  // One that grows is read as far as it is there.
  const Path path = files.write("a.txt", text);
  FileLines lines(path);
  std::string line;
  uint64_t count = 0;
  while (lines.next(line)) {
    if (++count == 1) std::filesystem::resize_file(path, text.size() + 100);
  }
  EXPECT_GE(count, text.size() / 20);
}

TEST(FileLines, LongLines) {
  const TextFiles files;
  std::string text;
  std::vector<std::string> expected;
  for (size_t i = 0; i < 12; ++i) {
    expected.emplace_back(i * 77777, static_cast<char>('a' + i));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(lines_of(files.write("a", text)), expected);
}

TEST(FileLines, BadBytesAreNamed) {
  const TextFiles files;
  const std::string message =
      message_of([&] { lines_of(files.write("a.tsv", "fine\ncaf\xE9\n")); });
  EXPECT_THAT(message, HasSubstr("a.tsv:2: byte 4 of the line (0xe9) is not UTF-8"));
  EXPECT_THAT(message, HasSubstr("iconv"));
  EXPECT_THAT(message_of([&] { lines_of(files.path("none")); }), HasSubstr("none"));
}

}  // namespace
}  // namespace onebit::corpus
