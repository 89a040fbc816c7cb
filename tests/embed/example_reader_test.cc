#include "onebit/apps/embed/example_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::embed {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EmbedExamples : public ::testing::Test {
 protected:
  Examples read(const std::string& name, const std::string& text, const FileLayout& layout = {}) {
    write_file_atomically(folder_ / name, text);
    return read_examples(folder_ / name, layout);
  }
  std::string error(const std::string& name, const std::string& text,
                    const FileLayout& layout = {}) {
    return message_of([&] { read(name, text, layout); });
  }

  TemporaryFolder folder_;
};

TEST_F(EmbedExamples, Pairs) {
  const Examples pairs = read("a.tsv", "anchor\tid\tpositive\none\t7\tuno\ntwo\t8\tdos\n");
  EXPECT_EQ(pairs.kind, Kind::kPairs);
  EXPECT_EQ(pairs.size(), 2);
  EXPECT_EQ(pairs.parts(), 2);
  EXPECT_EQ(pairs.text(0, 0), "one");
  EXPECT_EQ(pairs.text(0, 1), "uno");
  EXPECT_EQ(pairs.text(1, 1), "dos");
  EXPECT_TRUE(pairs.scores.empty());
}

TEST_F(EmbedExamples, TripletsOfJsonLines) {
  const Examples triplets = read("a.jsonl",
                                 "{\"query\": \"q\", \"positive\": \"p\", \"negative\": \"n\"}\n"
                                 "{\"negative\": \"m\", \"positive\": \"\", \"query\": \"r\"}\n");
  EXPECT_EQ(triplets.kind, Kind::kTriplets);
  EXPECT_EQ(triplets.size(), 2);
  EXPECT_EQ(triplets.text(0, 2), "n");
  EXPECT_EQ(triplets.text(1, 0), "r");
  EXPECT_EQ(triplets.text(1, 1), "");
}

TEST_F(EmbedExamples, ScoresAreDividedByTheirScale) {
  const Examples scored =
      read("a.csv", "sentence1,sentence2,score\n\"a, b\",c,5.000\nd,e,-1e0\n", {.score_scale = 5});
  EXPECT_EQ(scored.kind, Kind::kScored);
  EXPECT_EQ(scored.text(0, 0), "a, b");
  EXPECT_THAT(scored.scores, ElementsAre(1.0f, -0.2f));
  // Numbers of JSON lines, and columns by number without a header.
  EXPECT_THAT(
      read("a.jsonl", "{\"text\": \"a\", \"text_pair\": \"b\", \"similarity\": 0.25}\n").scores,
      ElementsAre(0.25f));
  EXPECT_THAT(
      read("b.tsv", "0.5\ta\tb\n", {.columns = {.anchor = "2", .positive = "3", .score = "1"}})
          .scores,
      ElementsAre(0.5f));
}

TEST_F(EmbedExamples, TheFirstRecordHasWhatOthersHave) {
  EXPECT_THAT(error("a.jsonl",
                    "{\"anchor\": \"a\", \"positive\": \"b\", \"negative\": null}\n"
                    "{\"anchor\": \"a\", \"positive\": \"b\", \"negative\": \"c\"}\n"),
              HasSubstr("the first record's `negative` is null, so that the negatives"));
}

// Without its score, a pair would be trained as two texts that match.
TEST_F(EmbedExamples, ALabelIsAScore) {
  for (const char* name : {"label", "labels", "scores"}) {
    const Examples scored =
        read("a.tsv", fmt::format("sentence1\tsentence2\t{}\na\tb\t1\nc\td\t0\n", name));
    EXPECT_EQ(scored.kind, Kind::kScored) << name;
    EXPECT_THAT(scored.scores, ElementsAre(1.0f, 0.0f)) << name;
  }
  const auto labelled = [&](const std::string& label, const FileLayout& layout = {}) {
    return error(
        "a.jsonl",
        fmt::format(R"({{"premise": "a", "sentence1": "b", "sentence2": "c", "label": {}}})",
                    label),
        layout);
  };
  EXPECT_THAT(
      labelled("\"neutral\""),
      AllOf(HasSubstr("a.jsonl:1: `label` is \"neutral\"; a score must be a number. `label` "
                      "is read as the score of the two texts"),
            HasSubstr("if it is a class, keep the records whose texts match")));
  EXPECT_THAT(labelled("true"), HasSubstr("a score must be a number"));
  EXPECT_THAT(labelled("2"),
              AllOf(HasSubstr("the score 2 is outside [-1, 1]"), HasSubstr("(--score-scale)"),
                    HasSubstr("select another column with --score")));
  EXPECT_EQ(labelled("2", {.score_scale = 2}), "(no error)");
  // The other names are asked first.
  EXPECT_THAT(read("a.tsv", "anchor\tpositive\tlabel\tscore\na\tb\tx\t0.5\n").scores,
              ElementsAre(0.5f));
  EXPECT_EQ(read("a.tsv", "anchor\tpositive\tnegative\tlabel\na\tb\tc\tx\n").kind, Kind::kTriplets);
}

TEST_F(EmbedExamples, ANegativeIsAnotherText) {
  EXPECT_THAT(
      error("a.tsv", "sentence1\tsentence2\na\tb\n", {.columns = {.negative = "sentence2"}}),
      HasSubstr("sentence2 is the negative and also another part of each example"));
}

TEST_F(EmbedExamples, ErrorsNameTheLine) {
  const std::string head = "anchor\tpositive\tscore\n";
  const std::string outside = error("a.tsv", head + "a\tb\t0.5\nc\td\t4\n");
  EXPECT_THAT(outside, HasSubstr("a.tsv:3: the score 4 is outside [-1, 1]"));
  EXPECT_THAT(outside, HasSubstr("set data.score_scale (--score-scale) to the greatest score"));
  for (const char* score : {"x", "", "nan", "1e999", "0.5 "}) {
    EXPECT_THAT(error("a.tsv", head + "a\tb\t" + score + "\n"),
                HasSubstr("a.tsv:2: `score` is \"" + std::string(score) + "\"; a score must be"))
        << score;
  }
  EXPECT_THAT(error("a.tsv", head), HasSubstr("has no example"));
  EXPECT_THAT(error("a.jsonl", "{\"anchor\": \"a\", \"positive\": 7}\n"),
              HasSubstr("a.jsonl:1: `positive` is the number 7"));
  EXPECT_THAT(error("a.jsonl", "{\"anchor\": [\"a\"], \"positive\": \"7\"}\n"),
              HasSubstr("`anchor` is a list"));
  EXPECT_THAT(error("a.doc", "x"), HasSubstr("unknown file ending"));
}

TEST_F(EmbedExamples, ChecksumsSeeTextsAndScores) {
  const std::string head = "anchor\tpositive\tscore\n";
  const uint32_t sum = checksum(read("a.tsv", head + "ab\tc\t0.5\n"));
  EXPECT_EQ(checksum(read("b.tsv", head + "ab\tc\t0.50\n")), sum);
  EXPECT_NE(checksum(read("b.tsv", head + "a\tbc\t0.5\n")), sum);
  EXPECT_NE(checksum(read("b.tsv", head + "ab\tc\t0.25\n")), sum);
}

TEST_F(EmbedExamples, LaterNegativesAndScoresAreNeverLost) {
  for (const char* key : {"negative", "negatives", "negative_7", "score", "similarity", "label"}) {
    EXPECT_THAT(
        error("a.jsonl", fmt::format("{{\"anchor\": \"a\", \"positive\": \"b\"}}\n"
                                     "{{\"anchor\": \"c\", \"positive\": \"d\", \"{}\": \"e\"}}\n",
                                     key)),
        HasSubstr(fmt::format("a.jsonl:2: has the key `{}`, which the first record", key)));
  }
}

TEST_F(EmbedExamples, ABadScoreLeavesOutTheWholeExample) {
  const Examples scored = read("a.jsonl",
                               "{\"sentence1\": \"a\", \"sentence2\": \"b\", \"score\": 0.5}\n"
                               "{\"sentence1\": \"c\", \"sentence2\": \"d\", \"score\": \"high\"}\n"
                               "{\"sentence1\": \"e\", \"sentence2\": null, \"score\": 0.5}\n"
                               "{\"sentence1\": \"f\", \"sentence2\": \"g\", \"score\": 1}\n",
                               {.left_out = corpus::LeftOut::kBad});
  EXPECT_EQ(scored.size(), 2);
  EXPECT_EQ(scored.scores.size(), 2u);
  EXPECT_EQ(scored.text(1, 0), "f");
  EXPECT_THAT(scored.texts.left_out, HasSubstr("2 records were left out: "));
}

}  // namespace
}  // namespace onebit::embed
