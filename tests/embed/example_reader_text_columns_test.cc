#include "onebit/apps/embed/example_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::embed {
namespace {

using finetune::RecordReader;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextColumns : public ::testing::Test {
 protected:
  RecordReader reader(const std::string& header, bool has_header = true) {
    write_file_atomically(folder_ / "f.tsv", header + "\n");
    return {folder_ / "f.tsv", {.has_header = has_header}};
  }
  ChosenColumns choose(const std::string& header, const Columns& columns = {}) {
    RecordReader file = reader(header);
    return choose_columns(file, columns, "give --anchor");
  }

  static std::string text_of(RecordReader file, const std::string& given) {
    return choose_text(file, given);
  }

  TemporaryFolder folder_;
};

TEST_F(TextColumns, AreFoundByTheirUsualNames) {
  EXPECT_THAT(choose("id\tanchor\tpositive").list(), ElementsAre("anchor", "positive"));
  EXPECT_EQ(choose("query\tanswer").kind(), Kind::kPairs);
  EXPECT_THAT(choose("negative\tpositive\tanchor").list(),
              ElementsAre("anchor", "positive", "negative"));
  EXPECT_EQ(choose("anchor\tpositive\tnegative").kind(), Kind::kTriplets);
  EXPECT_THAT(choose("sentence1\tsentence2\tscore").list(),
              ElementsAre("sentence1", "sentence2", "score"));
  EXPECT_EQ(choose("text\ttext_pair\tsimilarity").kind(), Kind::kScored);
}

TEST_F(TextColumns, AreThoseThatAreNamed) {
  EXPECT_THAT(choose("a\tb\tscore", {.anchor = "b", .positive = "a"}).list(),
              ElementsAre("b", "a", "score"));
  // An explicitly named column takes precedence.
  EXPECT_THAT(choose("anchor\tpositive\tscore\tnegative", {.negative = "negative"}).list(),
              ElementsAre("anchor", "positive", "negative"));
}

TEST_F(TextColumns, NumbersMeanNoHeader) {
  EXPECT_FALSE((Columns{.anchor = "1", .positive = "2"}.has_header()));
  EXPECT_FALSE((Columns{.anchor = "1", .positive = "2", .score = "3"}.has_header()));
  EXPECT_TRUE((Columns{.anchor = "1", .positive = "2", .score = "score"}.has_header()));
  EXPECT_TRUE((Columns{.anchor = "1", .positive = "2", .header = true}.has_header()));
  EXPECT_TRUE(Columns{}.has_header());
}

TEST_F(TextColumns, ErrorsNameWhatIsThereAndTheFix) {
  const std::string no_anchor = message_of([&] { choose("a\tpositive"); });
  EXPECT_THAT(no_anchor, HasSubstr("f.tsv: which column contains the anchor"));
  EXPECT_THAT(no_anchor, HasSubstr("there are a, positive; give --anchor"));
  EXPECT_THAT(message_of([&] { choose("anchor\tb"); }), HasSubstr("contains the positive"));
  EXPECT_THAT(message_of([&] { choose("anchor\tpositive\tnegative\tscore"); }),
              HasSubstr("at most one of them"));
  EXPECT_THAT(message_of([&] {
                RecordReader file = reader("a\tb", false);
                choose_columns(file, {}, "x");
              }),
              HasSubstr("read without a header"));
}

// sentence-transformers numbers the negatives it has mined, others write lists of them.
TEST_F(TextColumns, NegativesUnderAnotherNameAreNotLost) {
  for (const char* name : {"negative_1", "negatives", "neg", "hard_negatives"}) {
    EXPECT_THAT(message_of([&] { choose(std::string("anchor\tpositive\t") + name); }),
                HasSubstr(std::string("the negatives in ") + name + " would not be read"));
  }
  EXPECT_EQ(choose("anchor\tpositive\tnegative_1", {.negative = "negative_1"}).kind(),
            Kind::kTriplets);
  EXPECT_EQ(choose("anchor\tpositive\tneg", {.anchor = "anchor", .positive = "positive"}).kind(),
            Kind::kPairs);
  EXPECT_EQ(choose("anchor\tpositive\tnegative\tnegative_2").kind(), Kind::kTriplets);
  EXPECT_EQ(choose("anchor\tpositive\tnegotiator").kind(), Kind::kPairs);
}

TEST_F(TextColumns, TextsToEncodeAreInOne) {
  EXPECT_EQ(text_of(reader("id\tsentence"), ""), "sentence");
  EXPECT_EQ(text_of(reader("passage"), ""), "passage");
  EXPECT_EQ(text_of(reader("text\tpassage"), "passage"), "passage");
  EXPECT_THAT(message_of([&] { text_of(reader("a\tb"), ""); }),
              HasSubstr("there are a, b; give --text"));
}

}  // namespace
}  // namespace onebit::embed
