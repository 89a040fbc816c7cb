#include "onebit/data/corpus/input_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::corpus {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class InputFilesTest : public ::testing::Test {
 protected:
  Path write(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }

  TemporaryFolder folder_;
};

TEST_F(InputFilesTest, FindsTextInFoldersInOrder) {
  write("in/b/two.txt", "b\n");
  write("in/a.txt", "a\n");
  write("in/c.jsonl", "{\"text\": \"c\"}\n");
  write("in/c.ndjson", "{\"text\": \"c\"}\n");
  write("in/b/one.text", "c\n");
  write("in/b/image.png", "c\n");
  write("in/d.txt.zst", "c\n");
  write("in/e.jsonl.bz2", "c\n");
  write("in/.hidden/x.txt", "c\n");
  const InputFiles found = find_input_files({folder_ / "in"});
  std::vector<std::string> names;
  for (const InputFile& file : found.files) {
    names.push_back(Path(file.name).lexically_relative(folder_ / "in").string());
  }
  EXPECT_THAT(names, testing::ElementsAre("a.txt", "b/one.text", "b/two.txt", "c.jsonl", "c.ndjson",
                                          "d.txt.zst", "e.jsonl.bz2"));
  EXPECT_TRUE(found.files.back().jsonl);
  EXPECT_THAT(found.ignored, testing::ElementsAre(HasSubstr("image.png")));
}

// A link to a folder may lead back, and a pipe may never end.
TEST_F(InputFilesTest, CountsWhatIsNoFile) {
  namespace fs = std::filesystem;
  write("in/a.txt", "a\n");
  write("elsewhere/b.txt", "b\n");
  fs::create_symlink(folder_ / "elsewhere", folder_ / "in/linked");
  fs::create_symlink(folder_ / "in", folder_ / "in/loop");
  fs::create_symlink(folder_ / "elsewhere/b.txt", folder_ / "in/b.txt");
  fs::create_symlink("nowhere", folder_ / "in/dangling.txt");
  fs::create_symlink("self.txt", folder_ / "in/self.txt");
  fs::create_symlink("nowhere", folder_ / "in/.hidden");
  ASSERT_EQ(::mkfifo((folder_ / "in/pipe.txt").c_str(), 0600), 0);
  const InputFiles found = find_input_files({folder_ / "in"});
  ASSERT_EQ(found.files.size(), 2u);
  EXPECT_THAT(found.files[1].name, HasSubstr("in/b.txt")) << "a link to a file is one";
  EXPECT_THAT(
      found.no_files,
      testing::ElementsAre(AllOf(HasSubstr("dangling.txt"), HasSubstr("a link to no file")),
                           AllOf(HasSubstr("linked"), HasSubstr("a link to a folder")),
                           AllOf(HasSubstr("loop"), HasSubstr("a link to a folder")),
                           AllOf(HasSubstr("pipe.txt"), HasSubstr("neither a file nor a folder")),
                           AllOf(HasSubstr("self.txt"), HasSubstr("a link to no file"))));
  EXPECT_THAT(notes_of(found),
              testing::ElementsAre(AllOf(HasSubstr("5 entries of folders are not read"),
                                         HasSubstr("dangling.txt"))));
  fs::create_directory(folder_ / "links");
  fs::create_symlink(folder_ / "in", folder_ / "links/in");
  EXPECT_THAT(message_of([&] { find_input_files({folder_ / "links"}); }),
              AllOf(HasSubstr("contains no .txt"), HasSubstr("links/in (a link to a folder")));
}

// Their vocabularies and logs would be text where an output lies in the folder of its input.
TEST_F(InputFilesTest, LeavesOutWhatWasMadeFromTexts) {
  write("in/a.txt", "a\n");
  for (const char* file : {"store/manifest.json", "store/tokens.bin", "store/vocab.txt",
                           "index/index.json", "index/passages.jsonl", "run/metrics.jsonl",
                           "run/recipe.resolved.json", "bert/config.json", "bert/model.safetensors",
                           "bert/vocab.txt", "next.partial/lock", "next.partial/vocab.txt"}) {
    write(std::string("in/") + file, "x\n");
  }
  const InputFiles found = find_input_files({folder_ / "in"});
  ASSERT_EQ(found.files.size(), 1u) << found.files.back().name;
  EXPECT_THAT(found.no_texts,
              testing::ElementsAre(HasSubstr("bert (a model)"), HasSubstr("index (an index"),
                                   HasSubstr("next.partial (an unfinished folder)"),
                                   HasSubstr("run (a run)"), HasSubstr("store (a store)")));
  EXPECT_THAT(
      notes_of(found),
      testing::ElementsAre(HasSubstr("5 folders are made from texts and not read; first: ")));
  EXPECT_THAT(message_of([&] { find_input_files({folder_ / "in/store"}); }),
              HasSubstr("store: is a store, not a folder of texts"));
  EXPECT_THAT(message_of([&] { refuse_inputs_in(folder_ / "in", found.files); }),
              HasSubstr("a.txt: is in the output folder"));
  refuse_inputs_in(folder_ / "in/store", found.files);
}

TEST_F(InputFilesTest, RefusesArchivesWithAdvice) {
  for (const char* name :
       {"x.tar.xz", "x.tar.gz", "x.tar.zst", "x.tar.bz2", "x.tgz", "x.tar", "x.zip"}) {
    EXPECT_THAT(message_of([&] { find_input_files({write(name, "?")}); }),
                AllOf(HasSubstr(name), HasSubstr("unpack it")));
  }
  write("in/books.tar.xz", "?");
  EXPECT_THAT(message_of([&] { find_input_files({folder_ / "in"}); }),
              AllOf(HasSubstr("books.tar.xz"), HasSubstr("unpack it")));
}

TEST_F(InputFilesTest, RefusesWhatIsNoInput) {
  EXPECT_THAT(message_of([&] { find_input_files({folder_ / "nowhere"}); }),
              HasSubstr("no such file or folder"));
  EXPECT_THAT(message_of([&] { find_input_files({}); }), HasSubstr("no input: specify"));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(message_of([&] { find_input_files({folder_ / "empty"}); }),
              HasSubstr("contains no .txt"));
  for (const char* name : {"x.json", "x.csv", "x.TSV.gz", "x.parquet"}) {
    EXPECT_THAT(message_of([&] { find_input_files({write(name, "{}")}); }),
                AllOf(HasSubstr(name), HasSubstr(".jsonl")));
  }
  for (const char* name : {"x.html", "x.pdf", "x.docx"}) {
    EXPECT_THAT(message_of([&] { find_input_files({write(name, "<p>")}); }),
                AllOf(HasSubstr(name), HasSubstr("extract the text to a .txt file")));
  }
  EXPECT_EQ(find_input_files({write("x.md", "text"), write("README", "text")}).files.size(), 2u);
}

TEST_F(InputFilesTest, ReadsAFileOnce) {
  const Path file = write("in/a.txt", "a\n");
  write("in/b.txt", "b\n");
  std::filesystem::create_symlink("b.txt", folder_ / "in/c.txt");
  const InputFiles found = find_input_files({file, folder_ / "in", folder_ / "in/../in/b.txt"});
  EXPECT_EQ(found.files.size(), 2u);
  EXPECT_EQ(found.files.front().name, file.string());
  EXPECT_THAT(
      notes_of(found),
      testing::ElementsAre(HasSubstr("3 files are given more than once and read once; first: ")));
  EXPECT_EQ(find_input_files({"-", "-"}).files.size(), 1u);
}

}  // namespace
}  // namespace onebit::corpus
