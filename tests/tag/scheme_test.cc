#include "onebit/apps/tag/scheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::tag {
namespace {

using ::testing::HasSubstr;
using Tags = std::vector<std::string>;

Sentences sentences_of(const std::vector<Tags>& all) {
  Sentences sentences = {.source = "train.conll", .all = {}};
  for (const Tags& tags : all) {
    Sentence& sentence = sentences.all.emplace_back();
    sentence.line = sentences.all.size();
    for (const std::string& tag : tags) sentence.add_word("x" + tag);
    sentence.tags = tags;
  }
  return sentences;
}

Scheme found(const std::vector<Tags>& sentences) {
  return find_scheme(sentences_of(sentences));
}

TEST(Scheme, PrefixAndType) {
  const auto parts = [](std::string_view tag) {
    const EntityTag one = entity_tag(tag);
    return std::string(1, one.prefix) + " " + std::string(one.type);
  };
  EXPECT_EQ(parts("B-LOC"), "B LOC");
  EXPECT_EQ(parts("I-MISC-x"), "I MISC-x");
  EXPECT_EQ(parts("S"), "S _");
  EXPECT_EQ(parts("B-"), "B _");
  EXPECT_EQ(parts("O"), "O ");
}

TEST(Scheme, IsFoundInTheTags) {
  EXPECT_EQ(found({{"B-LOC", "I-LOC", "O"}, {"B-PER"}}), Scheme::kIob2);
  EXPECT_EQ(found({{"I-LOC", "I-LOC", "O"}, {"I-PER", "B-PER"}}), Scheme::kIob1);
  EXPECT_EQ(found({{"O", "I-LOC", "I-PER"}}), Scheme::kIob1);
  EXPECT_EQ(found({{"B-LOC", "E-LOC", "S-PER"}}), Scheme::kIobes);
  EXPECT_EQ(found({{"S-LOC"}}), Scheme::kIobes);
  EXPECT_EQ(found({{"B", "I", "O"}}), Scheme::kIob2);
  EXPECT_EQ(found({{"B-", "I-", "O"}}), Scheme::kIob2) << "without a type, as in seqeval";
  // One entity with a wrong start does not make a file IOB1.
  EXPECT_EQ(found({{"B-LOC", "O", "I-PER", "O", "B-LOC"}}), Scheme::kIob2);
}

TEST(Scheme, EntitiesThatEndWithEAreIoe) {
  EXPECT_EQ(found({{"I-PER", "E-PER", "O", "E-LOC"}}), Scheme::kIoe2);
  EXPECT_EQ(found({{"I-PER", "I-PER", "O", "E-LOC", "I-LOC"}}), Scheme::kIoe1);
  EXPECT_EQ(found({{"I", "E", "O"}}), Scheme::kIoe2);
  // One entity with a wrong end does not make a file IOE1.
  EXPECT_EQ(found({{"I-PER", "E-PER", "O", "I-LOC", "O", "E-LOC"}}), Scheme::kIoe2);
  EXPECT_EQ(found({{"B-LOC", "E-LOC", "O"}}), Scheme::kIobes);
  EXPECT_EQ(found({{"I-LOC", "I-LOC"}}), Scheme::kIob1) << "no end is marked";
}

TEST(Scheme, OtherTagsArePlain) {
  EXPECT_EQ(found({{"NN", "VBZ", "O"}}), Scheme::kPlain);
  EXPECT_EQ(found({{"B-LOC", "NN"}}), Scheme::kPlain);
  EXPECT_EQ(found({{"O", "O"}}), Scheme::kPlain);
  EXPECT_EQ(found({}), Scheme::kPlain);
}

TEST(Scheme, BilouIsRefusedWithTheWayOut) {
  const std::string message = message_of([] { found({{"B-LOC", "L-LOC", "O", "U-PER"}}); });
  EXPECT_THAT(message, HasSubstr("train.conll: its tags are those of BILOU"));
  EXPECT_THAT(message, HasSubstr("E- for L-"));
}

TEST(Scheme, BmesAndBmewoAreRefusedWithTheWayOut) {
  const auto message = [](const std::vector<Tags>& tags) {
    return message_of([&] { found(tags); });
  };
  EXPECT_THAT(message({{"B-LOC", "M-LOC", "E-LOC", "O", "S-PER"}}),
              HasSubstr("its tags are those of BMES; write I- for M-"));
  EXPECT_THAT(message({{"B", "M", "E", "S"}}), HasSubstr("those of BMES"));
  EXPECT_THAT(message({{"B-LOC", "M-LOC", "E-LOC", "O", "W-PER"}}),
              HasSubstr("those of BMEWO; write I- for M- and S- for W-"));
  EXPECT_EQ(found({{"M", "W"}}), Scheme::kPlain);
  EXPECT_EQ(found({{"B-LOC", "M-LOC", "NN"}}), Scheme::kPlain);
}

TEST(Scheme, OtherSpellingsAreRefusedWithTheUsualOne) {
  const auto message = [](const std::vector<std::vector<std::string>>& tags) {
    return message_of([&] { found(tags); });
  };
  EXPECT_THAT(message({{"B_LOC", "I_LOC", "O"}}), HasSubstr("write B-LOC for B_LOC"));
  EXPECT_THAT(message({{"LOC-B", "LOC-I", "O"}}), HasSubstr("write B-LOC for LOC-B"));
  EXPECT_THAT(message({{"b-loc", "i-loc", "o"}}), HasSubstr("write B-loc for b-loc"));
  EXPECT_THAT(message({{"B-LOC", "o"}}), HasSubstr("write O for o"));
  EXPECT_EQ(found({{"b", "i", "o"}}), Scheme::kPlain);
  EXPECT_EQ(found({{"I_LOC", "O"}}), Scheme::kPlain) << "nothing begins";
  EXPECT_EQ(found({{"B_LOC", "NN"}}), Scheme::kPlain);
}

// A line that names the columns, or a comment with two words.
TEST(Scheme, AnOddTagAmongThoseOfEntitiesIsNamedWithItsLine) {
  const auto message = [](const std::vector<std::vector<std::string>>& tags) {
    return message_of([&] { found(tags); });
  };
  EXPECT_THAT(message({{"tag", "B-LOC", "O"}}), HasSubstr("the tag \"tag\" is none of entities"));
  EXPECT_THAT(message({{"B-LOC", "O"}, {"I-LOC", "O-LOC"}}),
              HasSubstr("train.conll:2, word 2 (xO-LOC): the tag \"O-LOC\""));
  EXPECT_THAT(message({{"B-LOC", "O", "I"}}), HasSubstr("\"I\""));
  EXPECT_EQ(scheme_of_labels({"O", "B-LOC", "I-LOC", "X", "[CLS]"}), Scheme::kPlain);
}

TEST(Scheme, OfAModelsLabels) {
  EXPECT_EQ(scheme_of_labels({"O", "I-LOC", "E-LOC", "I-PER", "E-PER"}), Scheme::kIoe2);
  EXPECT_EQ(scheme_of_labels({"O", "I-LOC", "E-LOC", "I-PER"}), Scheme::kIoe1);
  EXPECT_EQ(scheme_of_labels({"O", "B-LOC", "I-LOC", "B-PER"}), Scheme::kIob2);
  EXPECT_EQ(scheme_of_labels({"O", "B-LOC", "I-LOC", "I-PER"}), Scheme::kIob1);
  EXPECT_EQ(scheme_of_labels({"O", "I-LOC", "E-LOC", "B-LOC"}), Scheme::kIobes);
  EXPECT_EQ(scheme_of_labels({"NOUN", "VERB"}), Scheme::kPlain);
}

// If entities of every type are adjacent to one of the same type, IOB1 has the same labels as IOB2.
TEST(Scheme, SentencesDistinguishIob1FromIob2) {
  const Tags both = {"O", "B-LOC", "I-LOC"}, of_iob1 = {"O", "B-LOC", "I-LOC", "I-PER"};
  const Sentences iob1 = sentences_of({{"I-LOC", "B-LOC"}, {"O", "I-LOC"}});
  const Sentences iob2 = sentences_of({{"B-LOC", "I-LOC"}, {"O", "B-LOC"}});
  EXPECT_EQ(scheme_of_labels(both), Scheme::kIob2);
  EXPECT_EQ(scheme_of_labels(both, iob1), Scheme::kIob1);
  EXPECT_EQ(scheme_of_labels(both, iob2), Scheme::kIob2);
  EXPECT_EQ(scheme_of_labels(of_iob1, iob2), Scheme::kIob2);
}

TEST(Scheme, SentencesDistinguishIoe1FromIoe2) {
  const Sentences ioe1 = sentences_of({{"E-LOC", "I-LOC"}}),
                  ioe2 = sentences_of({{"I-LOC", "E-LOC"}});
  EXPECT_EQ(scheme_of_labels({"O", "I-LOC", "E-LOC"}, ioe1), Scheme::kIoe1);
  EXPECT_EQ(scheme_of_labels({"O", "I-LOC", "E-LOC"}, ioe2), Scheme::kIoe2);
  EXPECT_EQ(scheme_of_labels({"O", "I-LOC", "E-LOC"}, sentences_of({{"B-LOC"}})), Scheme::kIoe2);
}

TEST(Scheme, SentencesOfOtherTagsDecideNothing) {
  const Sentences plain = sentences_of({{"NN", "VB"}}), iob2 = sentences_of({{"B-LOC"}});
  EXPECT_EQ(scheme_of_labels({"O", "B-LOC", "I-LOC", "I-PER"}, plain), Scheme::kIob1);
  EXPECT_EQ(scheme_of_labels({"O", "S-LOC"}, iob2), Scheme::kIobes);
  EXPECT_EQ(scheme_of_labels({"NOUN", "VERB"}, iob2), Scheme::kPlain);
}

TEST(Scheme, ATagBelongsToSchemesWithItsPrefix) {
  for (const Scheme scheme : {Scheme::kIob1, Scheme::kIob2, Scheme::kIobes}) {
    for (const char* tag : {"O", "B-LOC", "I-new", "B", "B-"}) {
      EXPECT_TRUE(is_tag_of(tag, scheme)) << tag;
    }
    for (const char* tag : {"NN", "L-LOC", "O-", ""}) EXPECT_FALSE(is_tag_of(tag, scheme)) << tag;
    EXPECT_EQ(is_tag_of("S-LOC", scheme), scheme == Scheme::kIobes);
  }
  EXPECT_TRUE(is_tag_of("NN", Scheme::kPlain));
}

TEST(Scheme, LabelsMustBelongToTheirs) {
  EXPECT_NO_THROW(check_labels({"O", "B-LOC", "I-LOC"}, Scheme::kIob2, "tag.labels"));
  EXPECT_NO_THROW(check_labels({"NN", "B-LOC"}, Scheme::kPlain, "tag.labels"));
  EXPECT_THAT(message_of([] {
                check_labels({"O", "E-LOC"}, Scheme::kIob2, "tag.labels");
              }),
              HasSubstr("tag.labels: the label \"E-LOC\" is none of iob2"));
  EXPECT_THAT(message_of([] {
                check_labels({"O", "NN"}, Scheme::kIobes, "tag.labels");
              }),
              HasSubstr("\"NN\""));
}

}  // namespace
}  // namespace onebit::tag
