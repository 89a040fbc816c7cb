#include "onebit/apps/tag/sentence_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/text_files.h"

namespace onebit::tag {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SentenceReader, FormatsByTheirEndings) {
  EXPECT_EQ(format_of("a/train.txt"), FileFormat::kConll);
  EXPECT_EQ(format_of("train.conll.gz"), FileFormat::kConll);
  EXPECT_EQ(format_of("en-ud-dev.conllu"), FileFormat::kConllu);
  EXPECT_EQ(format_of("frames.conllup"), FileFormat::kConllu);
  EXPECT_EQ(format_of("x.jsonl.xz"), FileFormat::kJsonLines);
  EXPECT_EQ(format_of("x.jsonl.zst"), FileFormat::kJsonLines);
  EXPECT_EQ(format_of("eng.testa"), std::nullopt);
  const TextFiles files;
  const Path path = files.write("eng.testa", "a O\n");
  EXPECT_THAT(message_of([&] { read_sentences(path, {}); }), HasSubstr("set data.format"));
}

TEST(SentenceReader, EveryFormatIsRead) {
  const TextFiles files;
  const std::string conll = "a B-X\nb O\n",
                    json = R"({"tokens": ["a", "b"], "tags": ["B-X", "O"]})";
  const std::string spans = R"({"text": "a b", "entities": [[0, 1, "X"]]})";
  for (const Path& path : {files.write("a.conll", conll), files.write("b.jsonl", json),
                           files.write("c.jsonl", spans)}) {
    const Sentences all = read_sentences(path, {});
    EXPECT_EQ(all.source, path.string());
    ASSERT_EQ(all.all.size(), 1u);
    EXPECT_EQ(all.words(), 2);
    EXPECT_THAT(all.all[0].tags, ElementsAre("B-X", "O")) << path;
  }
  const Sentences named =
      read_sentences(files.write("eng.testa", conll), {.format = FileFormat::kConll});
  EXPECT_EQ(named.words(), 2);
  // Column numbers do not apply to keys.
  EXPECT_EQ(read_sentences(files.path("b.jsonl"), {.tokens = "1", .tags = "2"}).words(), 2);
}

// Remembered column names are ignored for files that define other ones.
TEST(SentenceReader, WhatIsRememberedGivesWayToTheFile) {
  const TextFiles files;
  const FileLayout layout{.format = FileFormat::kConll,
                          .tokens = "word",
                          .tags = "ner",
                          .remembered = {.format = true, .tokens = true, .tags = true}};
  const auto words_of = [&](const Path& path) {
    const auto reader = open_sentences(path, layout, false);
    Sentence sentence;
    reader->next(sentence);
    return std::pair(sentence.words.size(), std::string(sentence.word(0)));
  };
  const std::pair expected(size_t{2}, std::string("Anna"));
  EXPECT_EQ(words_of(files.write("a.tsv", "pos\tword\nN\tAnna\nV\tflew\n")), expected);
  EXPECT_EQ(words_of(files.write("b.dat", "word\tner\nAnna\tO\nflew\tO\n")), expected);
  EXPECT_EQ(words_of(files.write("c.txt", "Anna x\nflew y\n")), expected);
  EXPECT_EQ(words_of(files.write("d.jsonl", R"({"text": "Anna flew"})")), expected);
  EXPECT_EQ(words_of(files.write("e.jsonl", R"({"tokens": ["Anna", "flew"]})")), expected);
  const Path plus = files.write("f.conll", "# global.columns = ID FORM TAG\n1\tAnna\tB\n2\tx\tO\n");
  FileLayout numbered = layout;
  numbered.tokens = numbered.tags = "2";
  const Sentences read = read_sentences(plus, numbered);
  EXPECT_EQ(read.all[0].word(0), "Anna");
  EXPECT_THAT(read.all[0].tags, ElementsAre("B", "O"));
}

TEST(SentenceReader, NoEntityFitsEveryScheme) {
  const TextFiles files;
  const Path path = files.write("a.conll", "a O\nb O\n");
  EXPECT_THAT(read_sentences(path, {.scheme = Scheme::kIob2}).all[0].tags, ElementsAre("O", "O"));
}

TEST(SentenceReader, TagsAreRewrittenInAScheme) {
  const TextFiles files;
  const Path path = files.write("a.conll", "a I-X\nb I-X\nc B-X\nd O\n");
  const Sentences as_they_are = read_sentences(path, {});
  EXPECT_THAT(as_they_are.all[0].tags, ElementsAre("I-X", "I-X", "B-X", "O"));
  EXPECT_EQ(as_they_are.rewritten, 0);
  const Sentences written = read_sentences(path, {.scheme = Scheme::kIobes});
  EXPECT_THAT(written.all[0].tags, ElementsAre("B-X", "E-X", "S-X", "O"));
  EXPECT_EQ(written.rewritten, 3);
  EXPECT_EQ(read_sentences(path, {.scheme = Scheme::kPlain}).rewritten, 0);
}

TEST(SentenceReader, WhatIsWrongIsNamed) {
  const TextFiles files;
  const Path plain = files.write("pos.conll", "a NN\nb VB\n");
  const std::string message = message_of([&] { read_sentences(plain, {.scheme = Scheme::kIob2}); });
  EXPECT_THAT(message, HasSubstr("pos.conll: its tags are not those of entities"));
  EXPECT_THAT(message, HasSubstr("set it to none"));
  EXPECT_THAT(message_of([&] { read_sentences(files.write("e.conll", "\n\n"), {}); }),
              HasSubstr("e.conll: contains no words"));
  EXPECT_THAT(message_of([&] { read_sentences(files.path("none.conll"), {}); }),
              HasSubstr("none.conll"));
}

}  // namespace
}  // namespace onebit::tag
