#include "onebit/data/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/data/compressed.h"

namespace onebit::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TextSourceTest : public ::testing::Test {
 protected:
  Path write(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  static std::vector<TextBlock> read_all(const std::vector<Path>& inputs,
                                         TextFormat format = TextFormat::kLines) {
    TextSource source(find_input_files(inputs).files, format);
    std::vector<TextBlock> blocks(1);
    while (source.read(blocks.back())) blocks.emplace_back();
    blocks.pop_back();
    EXPECT_EQ(source.consumed_bytes(), source.total_bytes());
    return blocks;
  }
  static std::string joined(const std::vector<TextBlock>& blocks) {
    std::string text;
    for (const TextBlock& block : blocks) text += block.text;
    return text;
  }

  TemporaryFolder folder_;
};

// About `size` bytes of numbered lines, an empty one after every tenth.
std::string numbered_lines(size_t size) {
  std::string text;
  for (int i = 0; text.size() < size; ++i) {
    text += "This is line number " + std::to_string(i) + (i % 10 == 9 ? ".\n\n" : ".\n");
  }
  return text;
}

TEST_F(TextSourceTest, ReadsPlainGzipAndXzAlike) {
  const std::string text = numbered_lines(3'500'000);
  const std::string half = text.substr(0, text.size() / 2), rest = text.substr(half.size());
  for (const Path& path :
       {write("a.txt", text), write("b.txt.gz", gzipped(text)), write("c.txt.xz", xzed(text)),
        write("d.txt.gz", gzipped(half) + gzipped(rest)),
        write("e.txt.xz", xzed(half) + xzed(rest)), write("unnamed", gzipped(text))}) {
    const std::vector<TextBlock> blocks = read_all({path});
    EXPECT_EQ(joined(blocks), text) << path;
    ASSERT_GE(blocks.size(), 3u);
    uint64_t offset = 0, line = 1;
    for (const TextBlock& block : blocks) {
      EXPECT_EQ(block.source, path.string());
      EXPECT_EQ(block.offset_bytes, offset);
      EXPECT_EQ(block.first_line, line);
      EXPECT_EQ(block.ends_file, &block == &blocks.back());
      EXPECT_TRUE(block.text.ends_with('\n'));
      EXPECT_LE(block.text.size(), size_t{1} << 20);
      offset += block.text.size();
      line += static_cast<uint64_t>(std::count(block.text.begin(), block.text.end(), '\n'));
    }
  }
}

TEST_F(TextSourceTest, CutsProseBetweenParagraphs) {
  const std::string text = numbered_lines(2'500'000);
  const std::vector<TextBlock> blocks = read_all({write("a.txt", text)}, TextFormat::kProse);
  EXPECT_EQ(joined(blocks), text);
  for (const TextBlock& block : blocks) {
    EXPECT_TRUE(block.ends_file || block.text.ends_with("\n\n"));
  }
}

TEST_F(TextSourceTest, CutsEndlessLinesWhereAWordEnds) {
  std::string text;
  while (text.size() < 10'000'000) text += "wörter ";
  const std::vector<TextBlock> blocks = read_all({write("a.txt", text)});
  EXPECT_EQ(joined(blocks), text);
  ASSERT_GE(blocks.size(), 3u);
  for (const TextBlock& block : blocks) EXPECT_TRUE(block.text.ends_with(' '));
  std::string one_word;
  while (one_word.size() < 9'000'000) one_word += "ö";
  const std::vector<TextBlock> parts = read_all({write("b.txt", one_word)});
  EXPECT_EQ(joined(parts), one_word);
  ASSERT_GE(parts.size(), 2u);
  for (const TextBlock& block : parts) EXPECT_EQ(block.text.size() % 2, 0u);
}

TEST_F(TextSourceTest, FindsTextInFoldersInOrder) {
  write("in/b/two.txt", "b\n");
  write("in/a.txt", "a\n");
  write("in/c.jsonl", "{\"text\": \"c\"}\n");
  write("in/b/one.text", "c\n");
  write("in/b/image.png", "c\n");
  write("in/.hidden/x.txt", "c\n");
  const InputFiles found = find_input_files({folder_ / "in"});
  std::vector<std::string> names;
  for (const InputFile& file : found.files) {
    names.push_back(Path(file.name).lexically_relative(folder_ / "in").string());
  }
  EXPECT_THAT(names, testing::ElementsAre("a.txt", "b/one.text", "b/two.txt", "c.jsonl"));
  EXPECT_THAT(found.ignored, testing::ElementsAre(HasSubstr("image.png")));
  const std::vector<TextBlock> blocks = read_all({folder_ / "in"});
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[3].format, TextFormat::kJsonl);
  for (const TextBlock& block : blocks) EXPECT_TRUE(block.ends_file);
}

TEST_F(TextSourceTest, RefusesArchivesWithAdvice) {
  for (const char* name : {"x.tar.xz", "x.tar.gz", "x.tgz", "x.tar", "x.zip"}) {
    EXPECT_THAT(message_of([&] { find_input_files({write(name, "?")}); }),
                AllOf(HasSubstr(name), HasSubstr("unpack it")));
  }
  write("in/books.tar.xz", "?");
  EXPECT_THAT(message_of([&] { find_input_files({folder_ / "in"}); }),
              AllOf(HasSubstr("books.tar.xz"), HasSubstr("unpack it")));
}

TEST_F(TextSourceTest, TellsWhatCannotBeRead) {
  EXPECT_THAT(message_of([&] { find_input_files({folder_ / "nowhere"}); }),
              HasSubstr("no such file or folder"));
  EXPECT_THAT(message_of([&] { find_input_files({}); }), HasSubstr("no input was given"));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(message_of([&] { find_input_files({folder_ / "empty"}); }),
              HasSubstr("holds no .txt"));
  EXPECT_THAT(message_of([&] { find_input_files({write("x.json", "{}")}); }), HasSubstr(".jsonl"));
  EXPECT_THAT(message_of([&] { read_all({write("x.txt", "")}); }),
              AllOf(HasSubstr("x.txt"), HasSubstr("is empty")));
  EXPECT_THAT(message_of([&] { read_all({write("y.txt", " \n\n\t\n")}); }), HasSubstr("is empty"));
  EXPECT_THAT(message_of([&] { read_all({write("z.txt", "\xFF\xFEh\0i\0")}); }),
              HasSubstr("UTF-16"));
}

TEST_F(TextSourceTest, TellsDamagedAndShortenedPackings) {
  const std::string text = numbered_lines(300'000);
  for (const auto& [name, packed] :
       {std::pair{"a.txt.gz", gzipped(text)}, std::pair{"a.txt.xz", xzed(text)}}) {
    EXPECT_THAT(message_of([&] { read_all({write(name, packed.substr(0, packed.size() / 2))}); }),
                AllOf(HasSubstr(name), HasSubstr("cut short")));
    std::string damaged = packed;
    for (size_t i = 0; i < 8; ++i) damaged[damaged.size() / 2 + i] = '\x55';
    EXPECT_THAT(message_of([&] { read_all({write(name, damaged)}); }),
                AllOf(HasSubstr(name), HasSubstr("damaged")));
    EXPECT_THAT(message_of([&] { read_all({write(name, "plain text")}); }),
                AllOf(HasSubstr(name), HasSubstr("is named")));
  }
}

TEST_F(TextSourceTest, DropsTheByteOrderMark) {
  const std::vector<TextBlock> blocks = read_all({write("a.txt", "\xEF\xBB\xBFhello\n")});
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].text, "hello\n");
  EXPECT_EQ(blocks[0].offset_bytes, 3u);
}

TEST_F(TextSourceTest, LimitsJsonLines) {
  const Path path = write("a.jsonl", "{");
  std::filesystem::resize_file(path, (size_t{256} << 20) + 10);
  EXPECT_THAT(message_of([&] { read_all({path}); }),
              AllOf(HasSubstr("a.jsonl:1"), HasSubstr("longer than 256 MiB")));
}

TEST_F(TextSourceTest, DecidesOnceAndSaysWhy) {
  const Path prose = write("a.txt", "He came. She left.\n\nThey met. It rained.\n\n");
  const Path lines = write("b.txt", "He came.\nShe left.\n\nThey met.\nIt rained.\n");
  for (const auto& [first, second, expected] :
       {std::tuple{prose, lines, TextFormat::kProse}, {lines, prose, TextFormat::kLines}}) {
    TextSource source(find_input_files({first, second}).files, TextFormat::kAuto);
    EXPECT_EQ(source.decision(), "");
    TextBlock block;
    while (source.read(block)) EXPECT_EQ(block.format, expected);
    EXPECT_THAT(source.decision(), AllOf(HasSubstr(std::string("text format: ") + name(expected)),
                                         HasSubstr(first.string())));
  }
}

TEST(TextFormat, IsDetectedFromTypicalTexts) {
  std::string reason;
  const std::string verses =
      "Genesis 1:1 In the beginning God created the heaven and the earth.\n"
      "Genesis 1:2 And the earth was without form, and void;\n"
      "Genesis 1:3 And God said, Let there be light: and there was light.\n\n"
      "Genesis 2:1 Thus the heavens and the earth were finished.\n"
      "Genesis 2:2 And on the seventh day God ended his work:\n";
  EXPECT_EQ(detect_text_format(verses, reason), TextFormat::kLines);
  const std::string wrapped =
      "It was the best of times, it was the worst of times, it was\n"
      "the age of wisdom, it was the age of foolishness, it was the\n"
      "epoch of belief, it was the epoch of incredulity.\n\n"
      "There were a king with a large jaw and a queen with a plain\n"
      "face, on the throne of England; there were a king with a\n"
      "large jaw and a queen with a fair face, on the throne of\n"
      "France.\n";
  EXPECT_EQ(detect_text_format(wrapped, reason), TextFormat::kProse);
  EXPECT_THAT(reason, HasSubstr("of the lines end like a sentence"));
  const std::string long_lines =
      "He came in. She left. Nobody knew why. Rain fell.\nHe slept. The night passed. Dawn came.\n";
  EXPECT_EQ(detect_text_format(long_lines, reason), TextFormat::kProse);
  EXPECT_THAT(reason, HasSubstr("sentences on average"));
}

TEST(TextFormat, HasNames) {
  for (const TextFormat format :
       {TextFormat::kAuto, TextFormat::kLines, TextFormat::kProse, TextFormat::kJsonl}) {
    EXPECT_EQ(text_format_from_name(name(format)), format);
  }
  EXPECT_THAT(message_of([] { text_format_from_name("prosa"); }),
              AllOf(HasSubstr("auto, lines, prose, jsonl"), HasSubstr("did you mean \"prose\"")));
}

}  // namespace
}  // namespace onebit::data
