#include "onebit/data/corpus/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>
#include <utility>

#include "onebit/data/corpus/token_store.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/corpus/compressed.h"

namespace onebit::corpus {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nking\nqueen\n##s\nsaid\n.\n,\nwent\nhome\n";

class PrepareTest : public ::testing::Test {
 protected:
  PrepareTest() { write("vocab.txt", kVocabulary); }

  Path write(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  PrepareOptions options(const std::vector<Path>& inputs) {
    PrepareOptions made;
    made.inputs = inputs;
    made.output = folder_ / "store";
    made.vocabulary = folder_ / "vocab.txt";
    made.format = TextFormat::kLines;
    made.threads = 3;
    return made;
  }
  // The sentences of each document as text.
  std::vector<std::vector<std::string>> documents() {
    const TokenStore store(folder_ / "store");
    std::vector<std::vector<std::string>> found;
    for (uint64_t document = 0; document < store.documents(); ++document) {
      found.emplace_back();
      for (uint64_t sentence = store.document_begin(document);
           sentence < store.document_begin(document + 1); ++sentence) {
        const uint64_t begin = store.sentence_begin(sentence);
        std::vector<int32_t> ids(store.sentence_begin(sentence + 1) - begin);
        store.copy_tokens(begin, ids.size(), ids.data());
        std::string text;
        for (const int32_t id : ids) text += store.vocabulary()->token(id) + " ";
        found.back().push_back(text);
      }
    }
    return found;
  }
  // Returns the error, after checking that it leaves no files.
  std::string refused(const PrepareOptions& given) {
    const int64_t before = folder_.entries();
    const std::string message = message_of([&] { prepare(given); });
    EXPECT_EQ(folder_.entries(), before) << message;
    return message;
  }

  TemporaryFolder folder_;
};

using Documents = std::vector<std::vector<std::string>>;

TEST_F(PrepareTest, MakesAStoreOfLines) {
  const Path input =
      write("in.txt", "The king said.\nThe queens went home.\n\n\nHome, the king.\n");
  const PrepareReport report = prepare(options({input}));
  const Documents expected = {{"the king said . ", "the queen ##s went home . "},
                              {"home , the king . "}};
  EXPECT_EQ(documents(), expected);
  EXPECT_EQ(report.manifest.tokens, 15u);
  EXPECT_EQ(report.manifest.sentences, 3u);
  EXPECT_EQ(report.manifest.documents, 2u);
  EXPECT_EQ(report.manifest.text_bytes, 55u);
  EXPECT_EQ(report.manifest.format, "lines");
  EXPECT_EQ(report.manifest.sources, std::vector<std::string>{input.string()});
  EXPECT_THAT(report.decisions, testing::ElementsAre(HasSubstr("casing: uncased")));
  const TokenStore store(folder_ / "store");
  store.verify();
  EXPECT_EQ(read_file(folder_ / "store" / "vocab.txt"), kVocabulary);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "store.partial"));
}

TEST_F(PrepareTest, ReadsFoldersOfEveryKind) {
  write("in/a.txt", "The king said.\n");
  write("in/b.txt.gz", packed(Packing::kGzip, "The queen said.\n"));
  write("in/c.txt.xz", packed(Packing::kXz, "The king went home.\n"));
  write("in/d.jsonl", "{\"text\": \"The queen went home. The king said.\"}\n");
  write("in/notes.md", "ignored");
  const PrepareReport report = prepare(options({folder_ / "in"}));
  const Documents expected = {{"the king said . "},
                              {"the queen said . "},
                              {"the king went home . "},
                              {"the queen went home . ", "the king said . "}};
  EXPECT_EQ(documents(), expected);
  EXPECT_EQ(report.manifest.format, "jsonl + lines");
  EXPECT_EQ(report.manifest.source_count, 4u);
  EXPECT_THAT(report.decisions, testing::Contains(HasSubstr("notes.md")));
}

TEST_F(PrepareTest, SkipsSentencesAndDocumentsWithoutTokens) {
  prepare(options({write("in.txt", "The king.\n\xC2\xAD\n\n\xE2\x80\x8B\n\nThe queen.\n")}));
  const Documents expected = {{"the king . "}, {"the queen . "}};
  EXPECT_EQ(documents(), expected);
}

// Many blocks: documents run across their ends, and the store must not depend on the threads.
TEST_F(PrepareTest, GivesTheSameStoreOnAnyNumberOfThreads) {
  std::string text;
  for (int i = 0; text.size() < 5'000'000; ++i) {
    text += i % 7 == 0 ? "The king went home.\n" : "The queens said, the king said.\n";
    if (i % 50'000 == 49'999) text += "\n";
  }
  PrepareOptions made = options({write("in.txt", text)});
  made.threads = 1;
  prepare(made);
  std::map<std::string, std::string> first;
  for (const char* name : {kTokensName, kSentencesName, kDocumentsName, kManifestName}) {
    first[name] = read_file(made.output / name);
  }
  EXPECT_EQ(TokenStore(made.output).documents(), 4u);
  for (const int threads : {2, 5}) {
    made.threads = threads;
    made.overwrite = true;
    prepare(made);
    for (const auto& [name, bytes] : first) EXPECT_EQ(read_file(made.output / name), bytes);
  }
  TokenStore(made.output).verify();
}

TEST_F(PrepareTest, LearnsAVocabulary) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "The king said the queen went home.\n";
  PrepareOptions made = options({write("in.txt", text)});
  made.vocabulary.reset();
  made.vocabulary_size = 60;
  const PrepareReport report = prepare(made);
  const TokenStore store(made.output);
  EXPECT_TRUE(store.vocabulary()->find("queen"));
  EXPECT_THAT(report.decisions, testing::Contains(HasSubstr("tokens learned, uncased")));
  EXPECT_EQ(store.sentences(), 200u);
  EXPECT_EQ(store.tokens(), 200u * 8);
}

TEST_F(PrepareTest, TakesCasingFromTheVocabularyOrTheUser) {
  const Path input = write("in.txt", "The King\n");
  write("cased.txt", std::string(kVocabulary) + "The\nKing\n");
  PrepareOptions made = options({input});
  made.vocabulary = folder_ / "cased.txt";
  EXPECT_THAT(prepare(made).decisions, testing::Contains(HasSubstr("casing: cased")));
  EXPECT_EQ(documents(), (Documents{{"The King "}}));
  made.overwrite = true;
  made.casing = text::Casing::kUncased;
  EXPECT_THAT(message_of([&] { prepare(made); }), HasSubstr("use --cased"));
  EXPECT_EQ(documents(), (Documents{{"The King "}}));  // the old store is unchanged
  made.vocabulary = folder_ / "vocab.txt";
  made.casing = text::Casing::kCased;
  prepare(made);
  EXPECT_EQ(documents(), (Documents{{"[UNK] [UNK] "}}));
}

TEST_F(PrepareTest, TakesVocabularyAndCasingOfAModel) {
  PrepareOptions made = options({write("in.txt", "The king\n")});
  const auto tokens = std::make_shared<const text::Vocabulary>(
      text::Vocabulary::load(*std::exchange(made.vocabulary, std::nullopt)));
  made.model_vocabulary = {.tokens = tokens, .casing = text::Casing::kCased, .place = "bert"};
  // The casing follows from the model's configuration, not from the words of the vocabulary.
  EXPECT_THAT(prepare(made).decisions,
              testing::Contains("vocabulary: the 14 tokens of bert, cased"));
  EXPECT_EQ(documents(), (Documents{{"[UNK] king "}}));
  made.overwrite = true;
  made.casing = text::Casing::kUncased;
  EXPECT_THAT(message_of([&] { prepare(made); }),
              AllOf(HasSubstr("bert: the model's text is cased"), HasSubstr("--uncased")));
  made.model_vocabulary->casing.reset();
  made.casing.reset();
  prepare(made);
  EXPECT_EQ(documents(), (Documents{{"the king "}}));
  made.vocabulary = folder_ / "vocab.txt";
  EXPECT_THAT(message_of([&] { prepare(made); }), HasSubstr("specify either a vocabulary"));
}

// The files equal, byte for byte, the files of a store of the text without repeated documents.
TEST_F(PrepareTest, CountsWordsThatTheVocabularyLacks) {
  const Path input = write("in.txt", "the king said\n\nThe Princess went home!\n");
  const UnknownWords unknown = prepare(options({input})).unknown;
  EXPECT_EQ(unknown.unknown_tokens, 2u);  // and "!"
  EXPECT_EQ(unknown.first, "Princess");
  EXPECT_DOUBLE_EQ(unknown.share(), 0.25);
}

TEST_F(PrepareTest, DropsDocumentsThatWereThereBefore) {
  std::vector<std::string> unlike = {"The king said.\nThe queen went home.\n",
                                     "The king said. The queen went home.\n", "The king said.\n",
                                     "The queen\n"};
  // Longer than a block, so that it spans several, and than the buffer of a file.
  std::string book;
  for (int i = 0; book.size() < 3'500'000; ++i) {
    book += i % 3 == 0   ? "The king said.\n"
            : i % 7 == 0 ? "The queens, home.\n"
                         : "Went the king\n";
  }
  unlike.push_back(book);
  unlike.push_back(book + "The queen\n");
  std::string once, often;
  for (const std::string& document : unlike) {
    once += document + "\n";
    often += document + "\n" + document + "\n" + unlike.front() + "\n\n";
  }
  PrepareOptions made = options({write("once.txt", once)});
  const StoreManifest expected = prepare(made).manifest;
  EXPECT_FALSE(expected.duplicate_documents.has_value());
  made = options({write("often.txt", often), write("last.txt", unlike[3])});
  made.output = folder_ / "unlike";
  made.drop_duplicates = true;
  const PrepareReport report = prepare(made);
  // Every document a second time, the first one after each, and the last file.
  EXPECT_EQ(report.manifest.duplicate_documents, 2 * unlike.size() + 1);
  for (const char* name : {kTokensName, kSentencesName, kDocumentsName}) {
    EXPECT_TRUE(read_file(folder_ / "unlike" / name) == read_file(folder_ / "store" / name))
        << name;
  }
  TokenStore(folder_ / "unlike").verify();
  made.drop_duplicates = false;
  made.output = folder_ / "all";
  EXPECT_EQ(prepare(made).manifest.tokens, report.manifest.tokens + report.duplicate_tokens);
}

TEST_F(PrepareTest, ReportsProgress) {
  PrepareOptions made = options({write("in.txt", "The king said.\n")});
  std::vector<PrepareProgress> seen;
  made.progress = [&](const PrepareProgress& progress) { seen.push_back(progress); };
  prepare(made);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().phase, "tokenizing");
  EXPECT_EQ(seen.back().done_bytes, 15u);
  EXPECT_EQ(seen.back().total_bytes, 15u);
  EXPECT_EQ(seen.back().text_bytes, 15u);
  EXPECT_EQ(seen.back().seconds_left, 0);
}

TEST_F(PrepareTest, EmptyFilesOfAFolderAreReported) {
  write("in/a.txt", "");
  write("in/b.txt", "The king said.\n");
  write("in/c.md", "x");
  const PrepareReport report = prepare(options({folder_ / "in"}));
  EXPECT_EQ(report.manifest.documents, 1u);
  EXPECT_THAT(report.decisions, testing::IsSupersetOf({HasSubstr("1 file is empty: "),
                                                       HasSubstr("1 file is not text")}));
}

TEST_F(PrepareTest, BadInputIsOneClearErrorAndLeavesNothing) {
  const Path good = write("good.txt", "The king said.\n");
  EXPECT_THAT(refused(options({folder_ / "nowhere.txt"})), HasSubstr("nowhere.txt"));
  EXPECT_THAT(refused(options({write("empty.txt", "")})), HasSubstr("empty.txt: is empty"));
  EXPECT_THAT(refused(options({good, write("latin.txt", "Gr\xFC\xDF Gott\n")})),
              HasSubstr("latin.txt: byte 2 (0xfc) is not UTF-8"));
  EXPECT_THAT(refused(options({write("bad.jsonl", "{\"text\": \"a\"}\n{\"text\"\n")})),
              HasSubstr("bad.jsonl:2"));
  EXPECT_THAT(refused(options({write("blank.txt", "\xC2\xAD\n")})),
              HasSubstr("no sentence was found in"));
  PrepareOptions bad = options({write("all.jsonl", "{\"text\": 5}\n")});
  bad.left_out = LeftOut::kBad;
  EXPECT_THAT(refused(bad), HasSubstr("no sentence was found: 1 record was left out: "));
  PrepareOptions made = options({good});
  made.vocabulary = write("nomask.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n");
  EXPECT_THAT(refused(made), AllOf(HasSubstr("nomask.txt"), HasSubstr("[MASK]")));
  made.vocabulary.reset();
  EXPECT_THAT(refused(made), HasSubstr("--vocab-size"));
  made = options({good});
  made.output = good;
  EXPECT_THAT(refused(made), HasSubstr("choose another output folder"));
}

TEST_F(PrepareTest, FullDiskIsAnErrorWithThePath) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  // FileWriter's own tests cover the full disk. Here the store's folder cannot be made.
  PrepareOptions made = options({write("in.txt", "The king said.\n")});
  made.output = "/dev/full/store";
  EXPECT_THAT(message_of([&] { prepare(made); }), HasSubstr("/dev/full/store"));
}

// If preparing is killed at any moment, it leaves nothing that looks complete, and the next run
// works.
TEST_F(PrepareTest, KilledRunsLeaveNoStore) {
  std::string text;
  while (text.size() < 20'000'000) text += "The queens said, the king said.\n\n";
  PrepareOptions made = options({write("in.txt", text)});
  for (const int milliseconds : {1, 20, 60}) {
    const pid_t child = ::fork();
    if (child == 0) {
      prepare(made);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    // Either it was killed, and then nothing is there, or it was faster.
    ASSERT_EQ(WIFEXITED(status), is_token_store(made.output));
    made.overwrite = true;
  }
  prepare(made);
  EXPECT_EQ(TokenStore(made.output).documents(), TokenStore(made.output).sentences());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "store.partial"));
}

class StandardInput {
 public:
  explicit StandardInput(const Path& path) : saved_(::dup(STDIN_FILENO)) {
    if (std::freopen(path.c_str(), "r", stdin) == nullptr) std::abort();
  }
  ~StandardInput() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

 private:
  int saved_;
};

TEST_F(PrepareTest, ReadsStandardInputAlsoPackedAndTwice) {
  const std::string text = "The king said.\nThe queen said.\n";
  for (const std::string& bytes :
       {text, packed(Packing::kGzip, text), packed(Packing::kZstd, text)}) {
    const StandardInput input(write("stdin", bytes));
    PrepareOptions made = options({"-"});
    made.overwrite = true;
    const PrepareReport report = prepare(made);
    EXPECT_EQ(documents(), (Documents{{"the king said . ", "the queen said . "}}));
    EXPECT_EQ(report.manifest.sources, std::vector<std::string>{"standard input"});
  }
  const StandardInput input(write("stdin", text));
  PrepareOptions made = options({"-"});
  made.overwrite = true;
  made.vocabulary.reset();
  made.vocabulary_size = 40;
  prepare(made);
  EXPECT_EQ(TokenStore(made.output).sentences(), 2u);
  EXPECT_FALSE(std::filesystem::exists(made.output / "streams"));
}

// `prepare --input <(zcat ...)`: a pipe ends after it has been read once.
TEST_F(PrepareTest, ReadsANamedPipeTwice) {
  const Path pipe = folder_ / "pipe.txt";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  PrepareOptions made = options({pipe});
  made.vocabulary.reset();
  made.vocabulary_size = 40;
  std::thread writer([&] { std::ofstream(pipe) << "The king said.\nThe queen said.\n"; });
  const PrepareReport report = prepare(made);
  writer.join();
  EXPECT_EQ(TokenStore(made.output).sentences(), 2u);
  EXPECT_EQ(report.manifest.sources, std::vector<std::string>{pipe.string()});
  EXPECT_FALSE(std::filesystem::exists(made.output / "streams"));
}

}  // namespace
}  // namespace onebit::corpus
