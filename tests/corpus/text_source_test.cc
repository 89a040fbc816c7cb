#include "onebit/data/corpus/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/corpus/compressed.h"

namespace onebit::corpus {
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

TEST_F(TextSourceTest, ReadsPlainAndPackedTextAlike) {
  const std::string text = numbered_lines(3'500'000);
  const std::string half = text.substr(0, text.size() / 2), rest = text.substr(half.size());
  std::vector<Path> paths = {write("a.txt", text)};
  for (const Packing packing : kPackings) {
    const std::string ending = ending_of(packing);
    paths.push_back(write("b.txt" + ending, packed(packing, text)));
    paths.push_back(write("c.txt" + ending, packed(packing, half) + packed(packing, rest)));
    paths.push_back(write(std::string("unnamed_") + name(packing), packed(packing, text)));
  }
  for (const Path& path : paths) {
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

TEST_F(TextSourceTest, ZerosMayFollowGzip) {
  const std::string packed_text = packed(Packing::kGzip, "one\n"), zeros(700, '\0');
  EXPECT_EQ(joined(read_all({write("a.txt.gz", packed_text + zeros)})), "one\n");
  EXPECT_EQ(joined(read_all({write("b.txt.gz", packed_text + zeros + packed_text)})), "one\none\n");
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

TEST_F(TextSourceTest, ReadsFilesOneAfterTheOther) {
  write("in/a.txt", "a\n");
  write("in/b.txt", "b\n");
  write("in/c.jsonl", "{\"text\": \"c\"}\n");
  const std::vector<TextBlock> blocks = read_all({folder_ / "in"});
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[2].format, TextFormat::kJsonl);
  for (const TextBlock& block : blocks) EXPECT_TRUE(block.ends_file);
}

TEST_F(TextSourceTest, NamesWhatCannotBeRead) {
  EXPECT_THAT(message_of([&] { read_all({write("x.txt", "")}); }),
              AllOf(HasSubstr("x.txt"), HasSubstr("is empty")));
  EXPECT_THAT(message_of([&] { read_all({write("y.txt", " \n\n\t\n")}); }), HasSubstr("is empty"));
  EXPECT_THAT(message_of([&] { read_all({write("z.txt", std::string("\xFF\xFEh\0i\0", 6))}); }),
              HasSubstr("UTF-16"));
  EXPECT_THAT(message_of([&] { read_all({write("c.txt", "One line.\rTwo.\r")}); }),
              HasSubstr("c.txt: its lines end in carriage returns (CR) alone"));
}

// A folder of many texts usually has some that a script has left empty.
TEST_F(TextSourceTest, EmptyFilesOfAFolderAreCounted) {
  write("in/a.txt", "");
  write("in/b.txt", "b\n");
  write("in/c.txt", " \n\n");
  TextSource source(find_input_files({folder_ / "in"}).files, TextFormat::kAuto);
  std::string text;
  for (TextBlock block; source.read(block);) text += block.text;
  EXPECT_THAT(text, HasSubstr("b\n"));
  EXPECT_THAT(source.empty_files(),
              AllOf(HasSubstr("2 files are empty; first: "), HasSubstr("in/a.txt")));
  // They say nothing of the others' format.
  EXPECT_THAT(source.decision(), HasSubstr("in/b.txt"));
}

TEST_F(TextSourceTest, ReportsDamagedAndShortenedArchives) {
  const std::string text = numbered_lines(300'000);
  for (const Packing packing : kPackings) {
    const std::string name = "a.txt" + ending_of(packing), whole = packed(packing, text);
    const auto error_of = [&](const std::string& content) {
      return message_of([&] { read_all({write(name, content)}); });
    };
    for (const size_t left : {whole.size() / 2, whole.size() - 3, size_t{30}}) {
      EXPECT_THAT(error_of(whole.substr(0, left)),
                  AllOf(HasSubstr(name), HasSubstr("the file is truncated")))
          << left;
    }
    std::string damaged = whole;
    // Damages the start of the first block, because not all formats have checksums.
    for (size_t i = 0; i < 8; ++i) damaged[40 + i] = '\x55';
    EXPECT_THAT(error_of(damaged), AllOf(HasSubstr(name), HasSubstr("damaged")));
    // Unknown bytes after the compressed data must not be ignored silently.
    EXPECT_THAT(error_of(whole + "and something else"),
                AllOf(HasSubstr(name), HasSubstr("damaged")));
    EXPECT_THAT(error_of("plain text"), AllOf(HasSubstr(name), HasSubstr("has the suffix")));
    EXPECT_THAT(error_of(packed(packing, " \n")), AllOf(HasSubstr(name), HasSubstr("is empty")));
  }
  EXPECT_THAT(message_of([&] {
                read_all({write("a.zst", packed(Packing::kZstd, packed(Packing::kZstd, text)))});
              }),
              HasSubstr("is compressed twice"));
}

TEST_F(TextSourceTest, TextThatBeginsLikePackedDataIsText) {
  EXPECT_EQ(joined(read_all({write("a.txt", "BZh9 is how it begins\n")})),
            "BZh9 is how it begins\n");
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

TEST_F(TextSourceTest, DecidesForEachFileAndReportsWhy) {
  const Path prose = write("a.txt", "He came. She left.\n\nThey met. It rained.\n\n");
  const Path lines = write("b.txt", "He came.\nShe left.\n\nThey met.\nIt rained.\n");
  const Path more_lines = write("c.txt", "He came.\nShe left.\n\nThey met.\nIt rained.\n");
  TextSource source(find_input_files({prose, lines, more_lines}).files, TextFormat::kAuto);
  EXPECT_EQ(source.decision(), "");
  std::vector<TextFormat> formats;
  for (TextBlock block; source.read(block);) formats.push_back(block.format);
  EXPECT_THAT(formats,
              testing::ElementsAre(TextFormat::kProse, TextFormat::kLines, TextFormat::kLines));
  EXPECT_THAT(source.decision(),
              AllOf(HasSubstr("text format: lines (2 files), because "), HasSubstr(lines.string()),
                    HasSubstr("; prose (1 file), because an empty line follows nearly every line"),
                    HasSubstr("--format documents"), HasSubstr(prose.string())));
}

TEST(CheckUtf8, NamesPathAndByte) {
  const auto checked = [](const std::string& text) {
    return message_of([&] { check_utf8({.source = "f", .offset_bytes = 100, .text = text}); });
  };
  EXPECT_EQ(checked("gr\xC3\xBC\xC3\x9F"), "(no error)");
  EXPECT_THAT(checked("gr\xFC\xDF"),
              AllOf(HasSubstr("f: byte 102 (0xfc) is not UTF-8"), HasSubstr("iconv")));
}

}  // namespace
}  // namespace onebit::corpus
