#include "onebit/apps/tag/conll_reader.h"

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

// What published files have before a sentence.
TEST(ConllReader, LinesThatCannotBeWordsAreComments) {
  const auto with = [](const std::string& comment, const std::string& row, Options options = {}) {
    const std::string sentence = comment + "\n" + row + "\n\n";
    return shown(read(sentence + sentence, std::move(options)));
  };
  // CoNLL-U's comments before the columns of CoNLL-2003, as many as the comment has words.
  EXPECT_THAT(with("# sent_id = 1", "EU NNP I-NP B-ORG"), ElementsAre("EU/B-ORG", "EU/B-ORG"));
  EXPECT_THAT(with("# text = EU", "EU\tB-ORG"), ElementsAre("EU/B-ORG", "EU/B-ORG"));
  // GermEval 2014.
  EXPECT_THAT(with("#\thttp://de.wikipedia.org [2009-10-17]", "1\tEU\tB-ORG\tO",
                   {.tokens = "2", .tags = "3"}),
              ElementsAre("EU/B-ORG", "EU/B-ORG"));
  // MultiCoNER.
  EXPECT_THAT(with("# id 01\tdomain=en", "EU _ _ B-ORG"), ElementsAre("EU/B-ORG", "EU/B-ORG"));
  // The same with a space for the tab: as many columns as a row, but no tag of entities.
  EXPECT_THAT(with("# id 01 domain=en", "EU _ _ B-ORG"), ElementsAre("EU/B-ORG", "EU/B-ORG"));
  EXPECT_THAT(with("# id 01 domain=en", "EU _ _ B-ORG", {.with_tags = false}),
              ElementsAre("EU", "EU"));
  // CoNLL-2012.
  EXPECT_THAT(with("#begin document (a); part 000", "a 0 0 EU B-ORG", {.tokens = "4"}),
              ElementsAre("EU/B-ORG", "EU/B-ORG"));
  // A comment as long as a row, where # is in a column without words.
  EXPECT_THAT(with("# a\tb\tc", "1\tEU\tB-ORG", {.tokens = "2", .tags = "3"}),
              ElementsAre("EU/B-ORG", "EU/B-ORG"));
  // Comments may be after the header, and before it.
  EXPECT_THAT(shown(read("# a b c d\nword tag\n# a b c d\nEU B-ORG\n", {.tokens = "word"})),
              ElementsAre("EU/B-ORG"));
  EXPECT_THAT(with("# doc1", "EU", {.with_tags = false}), ElementsAre("EU", "EU"));
}

TEST(ConllReader, AHashIsAWord) {
  // Of the words in the second column the first has the part of speech #, a pound sign's.
  EXPECT_THAT(shown(read("#\tGBP\tO\nNN\tbank\tO\n\n#\t#\tO\n", {.tokens = "2", .tags = "3"})),
              ElementsAre("GBP/O bank/O", "#/O"));
  EXPECT_THAT(shown(read("#onebit O\n# O\n\n# B-X\na O\n")),
              ElementsAre("#onebit/O #/O", "#/B-X a/O"));
  EXPECT_THAT(shown(read("a\tDET\n\n#\tSYM\n#nlp\tNOUN\n")),
              ElementsAre("a/DET", "#/SYM #nlp/NOUN"));
  EXPECT_THAT(shown(read("#\na\n", {.with_tags = false})), ElementsAre("# a"));
  EXPECT_THAT(shown(read("a O\n# sent_id = 1\n\n", {.comments = Comments::kYes})),
              ElementsAre("a/O"));
}

TEST(ConllReader, AnUnclearHashIsAnErrorThatNamesTheOption) {
  const std::string text = "# doc1\na DET\nb NOUN\n\n# doc2\nc DET\n";
  const std::string message = error_of(text);
  EXPECT_THAT(message,
              HasSubstr("f.conll:1: may be a comment, or the word \"#\" with the tag \"doc1\""));
  EXPECT_THAT(message, HasSubstr("--comments yes or no (data.comments)"));
  EXPECT_THAT(shown(read(text, {.comments = Comments::kYes})),
              ElementsAre("a/DET b/NOUN", "c/DET"));
  EXPECT_THAT(shown(read(text, {.comments = Comments::kNo})),
              ElementsAre("#/doc1 a/DET b/NOUN", "#/doc2 c/DET"));
  // A type of entity without a prefix.
  EXPECT_THAT(error_of("a O\n\n# PER\n"), HasSubstr("f.conll:3: may be a comment"));
}

TEST(ConllReader, ACommentInsideASentenceIsAnErrorThatNamesTheOption) {
  EXPECT_THAT(
      error_of("a O\n# sent_id = 1\nb O\n"),
      HasSubstr("f.conll:2: has 4 columns, the first row of a word (line 1) has 2: a comment "
                "inside a sentence?"));
  // This comment has as many words as a row.
  const std::string text = "a DT B-NP O\n# sent_id = 1\nb NN I-NP O\n";
  EXPECT_THAT(error_of(text), HasSubstr("f.conll:2: may be a comment inside a sentence, or the "
                                        "word \"#\" with the tag \"1\"; give --comments"));
  EXPECT_THAT(shown(read(text, {.comments = Comments::kYes})), ElementsAre("a/O b/O"));
  EXPECT_THAT(shown(read(text, {.comments = Comments::kNo})), ElementsAre("a/O #/1 b/O"));
  EXPECT_THAT(shown(read("a DT B-NP O\n# # B-NP O\n# = SYM O\n")), ElementsAre("a/O #/O #/O"));
}

std::vector<std::string> notes_of(const std::string& text, Options options = {}) {
  const TextFiles files;
  ConllReader reader(files.write("f.conll", text), std::move(options));
  for (Sentence one; reader.next(one);) {
  }
  return reader.notes();
}

TEST(ConllReader, WhatWasLeftOutIsNoted) {
  EXPECT_THAT(notes_of("# a b\nx\tO\n\n# c d\ny\tO\n"),
              ElementsAre(HasSubstr("2 lines begin with # and were left out as comments")));
  EXPECT_THAT(notes_of("# a b\nx\tO\n"),
              ElementsAre(HasSubstr("line 1 begins with # and was left")));
  EXPECT_THAT(notes_of("x\tO\n\tO\n"), ElementsAre("line 2 has an empty word and was left out"));
  EXPECT_THAT(notes_of("a\tO\n"), ElementsAre());
  EXPECT_THAT(notes_of("Anna NNP B-NP B-PER\nlives VBZ B-VP O\nin IN B-PP O\nRome NNP B-NP B-LOC\n",
                       {.with_tags = false}),
              ElementsAre(HasSubstr("words are the first of 4 columns, and no other is read")));
  EXPECT_THAT(notes_of(kConllu, {.is_conllu = true}), ElementsAre());
}

// GermEval has a few.
TEST(ConllReader, RowsWithAnEmptyWordAreLeftOut) {
  EXPECT_THAT(shown(read("1\ta\tO\n2\t\tO\n3\tb\tB-X\n\n1\t \tO\n\n1\tc\tO\n", {.tokens = "2"})),
              ElementsAre("a/O b/B-X", "c/O"));
}

TEST(ConllReader, AColumnThatNamesTheSentenceIsNotThatOfTheWords) {
  const std::string text =
      "Sentence #\tWord\tPOS\tTag\nSentence: 1\tThousands\tNNS\tO\n\tof\tIN\tO\n"
      "\tLondon\tNNP\tB-geo\nSentence: 2\ta\tDT\tO\n";
  EXPECT_THAT(
      error_of(text, {.left_out = corpus::LeftOut::kBad, .fix = "give --tokens"}),
      HasSubstr("f.conll:4: the first column is empty, as in the row before, so that it is "
                "not that of the words; give --tokens, and write an empty line after each"));
  const std::string separate =
      "f.conll:5: a sentence begins according to the column \"Sentence #\", which is not read: "
      "sentences are separated by empty lines";
  EXPECT_THAT(error_of(text, {.tokens = "Word", .tags = "Tag"}), HasSubstr(separate));
  std::string parted = text;
  parted.insert(parted.find("Sentence: 2"), "\n");
  EXPECT_THAT(shown(read(parted, {.tokens = "Word", .tags = "Tag"})),
              ElementsAre("Thousands/O of/O London/B-geo", "a/O"));
  // A word that is lost now and then.
  EXPECT_THAT(shown(read("a\tX\tO\n\tX\tO\nb\tX\tO\n\tX\tO\n")), ElementsAre("a/O b/O"));
}

// Universal NER's files have rows of 3 and of 5 columns.
TEST(ConllReader, RowsDifferBehindColumnsThatAreGivenByNumber) {
  const std::string text = "1\ta\tB-X\n2\tb\tO\t-\tname\n\n1\tc\tO\n";
  const Options options = {.tokens = "2", .tags = "3"};
  EXPECT_THAT(shown(read(text, options)), ElementsAre("a/B-X b/O", "c/O"));
  EXPECT_THAT(notes_of(text, options),
              ElementsAre("line 2 has more or fewer columns than the first word"));
  EXPECT_THAT(error_of("1\ta\tO\n2\tb\n", options), HasSubstr("f.conll:2: has 2 columns"));
  EXPECT_THAT(error_of(text, {.tokens = "2"}), HasSubstr("give the columns by number"));
}

TEST(ConllReader, NumbersOfWordsAreNoWords) {
  const std::string text = "1\ta\tO\n2\tb\tO\n3\tc\tB-X\n";
  EXPECT_THAT(error_of(text, {.fix = "give --tokens"}),
              HasSubstr("f.conll:1: its first column counts the words (1, 2, 3), so that it is not "
                        "that of the words; give --tokens"));
  EXPECT_THAT(shown(read(text, {.tokens = "1"})), ElementsAre("1/O 2/O 3/B-X"));
  EXPECT_THAT(error_of("0 a O\n1 b O\n2 c B-X\n"), HasSubstr("counts the words (0, 1, 2)"));
  EXPECT_THAT(error_of("8 a O\n9 b O\n10 c B-X\n"), HasSubstr("counts the words (8, 9, 10)"));
  EXPECT_THAT(shown(read("10 a O\n9 b O\n8 c O\n")), ElementsAre("10/O 9/O 8/O"));
}

TEST(ConllReader, ABadRowLeavesOutItsSentence) {
  const std::string text = "a O\nb B-X\n\nNew York O\nc O\n\nd O\n";
  const Options options = {.left_out = corpus::LeftOut::kBad};
  EXPECT_THAT(shown(read(text, options)), ElementsAre("a/O b/B-X", "d/O"));
  EXPECT_THAT(notes_of(text, options), ElementsAre(HasSubstr("1 record was left out: ")));
  EXPECT_THAT(error_of(text, {.left_out = corpus::LeftOut::kMissing}),
              HasSubstr("--skip-bad-records"));
  EXPECT_THAT(error_of("a O\n", {.tags = "3", .left_out = corpus::LeftOut::kBad}),
              HasSubstr("there is no column 3"));
}

TEST(ConllReader, WhatIsWrongIsNamed) {
  const std::string columns = error_of("EU B-ORG\nNew York B-LOC\n");
  EXPECT_THAT(columns,
              HasSubstr("f.conll:2: has 3 columns, the first row of a word (line 1) has 2"));
  EXPECT_THAT(columns, HasSubstr("tabs"));
  EXPECT_THAT(
      error_of("a\nb\n", {.fix = "give --tags"}),
      HasSubstr("column 1 would contain both words and tags, and there is no other; give --tags"));
  EXPECT_THAT(error_of("a X\n", {.tags = "3", .fix = "give --tags"}),
              HasSubstr("f.conll:1: there is no column 3 for the tags: there are 2; give --tags"));
  EXPECT_THAT(error_of("a X\n", {.tags = "0"}), HasSubstr("there is no column 0"));
  EXPECT_THAT(error_of("a X\n", {.tags = "02"}), HasSubstr("there is no column \"02\""));
  EXPECT_THAT(error_of("a\tX\nb\t\n"), HasSubstr("f.conll:2: the tag is empty"));
  EXPECT_THAT(error_of("caf\xE9 X\n"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(error_of("1 a X\n", {.is_conllu = true}),
              HasSubstr("has 3 columns, and 10 are named"));
}

}  // namespace
}  // namespace onebit::tag
