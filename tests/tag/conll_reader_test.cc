#include "onebit/tag/conll_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/text_files.h"

namespace onebit::tag {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Options = ConllReader::Options;

std::vector<Sentence> read(const std::string& text, Options options = {}) {
  const TextFiles files;
  ConllReader reader(files.write("f.conll", text), std::move(options));
  std::vector<Sentence> all;
  for (Sentence one; reader.next(one);) all.push_back(one);
  return all;
}

// "word/tag word/tag" of each sentence.
std::vector<std::string> shown(const std::vector<Sentence>& sentences) {
  std::vector<std::string> texts;
  for (const Sentence& one : sentences) {
    std::string& text = texts.emplace_back();
    for (size_t i = 0; i < one.words.size(); ++i) {
      text += fmt::format("{}{}{}", i == 0 ? "" : " ", one.word(i),
                          one.tags.empty() ? "" : "/" + one.tags[i]);
    }
  }
  return texts;
}

std::string error_of(const std::string& text, const Options& options = {}) {
  return message_of([&] { read(text, options); });
}

TEST(ConllReader, TheColumnsOfConll2003) {
  const auto all = read(
      "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n\n"
      "-DOCSTART- -X- O O\n\nPeter NNP I-NP I-PER\n");
  EXPECT_THAT(shown(all), ElementsAre("EU/I-ORG rejects/O", "Peter/I-PER"));
  EXPECT_EQ(all[0].line, 3u);
  EXPECT_EQ(all[1].line, 9u);
  EXPECT_EQ(all[0].text, "EU rejects");
}

TEST(ConllReader, ColumnsByNumber) {
  const std::string text = "1 EU NNP O\n2 is VBZ O\n";
  EXPECT_THAT(shown(read(text, {.tokens = "2", .tags = "3"})), ElementsAre("EU/NNP is/VBZ"));
  EXPECT_THAT(shown(read(text, {.tokens = "2", .with_tags = false})), ElementsAre("EU is"));
}

TEST(ConllReader, TabsKeepSpacesAndEndsOfLines) {
  EXPECT_THAT(shown(read("New York\tB\r\n\r\n!\tO\r\n")), ElementsAre("New York/B", "!/O"));
  // Several spaces and tabs after a line of spaces.
  EXPECT_THAT(shown(read("a  X\n b   Y \n")), ElementsAre("a/X b/Y"));
  EXPECT_THAT(shown(read("a X")), ElementsAre("a/X"));
  EXPECT_THAT(shown(read("")), ElementsAre());
}

constexpr const char* kConllu =
    "# sent_id = 1\n# text = Au lac .\n"
    "1-2\tAu\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tà\tà\tADP\tP\t_\t3\tcase\t_\t_\n"
    "2\tle\tle\tDET\tD\t_\t3\tdet\t_\t_\n"
    "3\tlac\tlac\tNOUN\tN\t_\t0\troot\t_\t_\n"
    "3.1\tx\tx\tX\tX\t_\t_\t_\t_\t_\n"
    "4\t#\t#\tPUNCT\tF\t_\t3\tpunct\t_\t_\n\n";

TEST(ConllReader, ConlluHasNamesCommentsAndWordsOfSeveralTokens) {
  const Options options = {.is_conllu = true};
  EXPECT_THAT(shown(read(kConllu, options)), ElementsAre("à/ADP le/DET lac/NOUN #/PUNCT"));
  EXPECT_THAT(shown(read(kConllu, {.tokens = "LEMMA", .tags = "XPOS", .is_conllu = true})),
              ElementsAre("à/P le/D lac/N #/F"));
  EXPECT_THAT(error_of(kConllu, {.tags = "NER", .is_conllu = true, .fix = "give --tags"}),
              HasSubstr("there is no column \"NER\" for the tags: it has ID, FORM, LEMMA"));
}

TEST(ConllReader, NamesInTheFile) {
  EXPECT_THAT(shown(read("# global.columns = ID FORM NER\n# a comment\n1\ta\tB-X\n2\tb\tO\n")),
              ElementsAre("a/B-X b/O"));
  EXPECT_THAT(shown(read("word pos ner\n\nEU NNP B-ORG\n", {.tokens = "word", .tags = "pos"})),
              ElementsAre("EU/NNP"));
  const std::string message =
      error_of("word pos ner\nEU NNP B-ORG\n", {.tokens = "text", .fix = "give --tokens"});
  EXPECT_THAT(message, HasSubstr("f.conll:1: there is no column \"text\""));
  EXPECT_THAT(message, HasSubstr("word, pos, ner; give --tokens"));
}

// Without column names, a line that starts with # is a word.
TEST(ConllReader, AHashIsAWord) {
  EXPECT_THAT(shown(read("#onebit O\n# O\n")), ElementsAre("#onebit/O #/O"));
  EXPECT_THAT(error_of("a O\n\n# id = 3\nb O\n"), HasSubstr("The format conllu supports them"));
}

TEST(ConllReader, WhatIsWrongIsNamed) {
  const std::string columns = error_of("EU B-ORG\nNew York B-LOC\n");
  EXPECT_THAT(columns, HasSubstr("f.conll:2: has 3 columns, the first word's line has 2"));
  EXPECT_THAT(columns, HasSubstr("tabs"));
  EXPECT_THAT(
      error_of("a\nb\n", {.fix = "give --tags"}),
      HasSubstr("column 1 would contain both words and tags, and there is no other; give --tags"));
  EXPECT_THAT(error_of("a X\n", {.tags = "3", .fix = "give --tags"}),
              HasSubstr("f.conll:1: there is no column 3 for the tags: there are 2; give --tags"));
  EXPECT_THAT(error_of("a X\n", {.tags = "0"}), HasSubstr("there is no column 0"));
  EXPECT_THAT(error_of("a\tX\n\tX\n"), HasSubstr("f.conll:2: the word is empty"));
  EXPECT_THAT(error_of("a\tX\nb\t\n"), HasSubstr("f.conll:2: the tag is empty"));
  EXPECT_THAT(error_of("caf\xE9 X\n"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(error_of("1 a X\n", {.is_conllu = true}),
              HasSubstr("has 3 columns, and 10 are named"));
}

}  // namespace
}  // namespace onebit::tag
