// Compares with values of seqeval in both of its modes, which tools/make_tag_goldens.py wrote.
#include "onebit/apps/tag/tag_scores.h"
#include "onebit/ground/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/apps/tag/tag_set.h"
#include "onebit/ground/base/file.h"

namespace onebit::tag {
namespace {

using ::testing::HasSubstr;
using Tags = std::vector<std::string>;

Sentences sentences_of(const std::vector<Tags>& tags) {
  Sentences all = {.source = "dev", .all = {}};
  for (const Tags& list : tags) {
    Sentence& one = all.all.emplace_back();
    for (size_t i = 0; i < list.size(); ++i) one.add_word("w");
    one.tags = list;
  }
  return all;
}

void compare(const std::vector<CountedLabel>& got, const Json& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const CountedLabel& one : got) {
    ASSERT_TRUE(wanted.contains(one.label)) << one.label;
    const Json& row = wanted.at(one.label);
    EXPECT_NEAR(one.counts.precision(), row[0].get<double>(), 1e-9) << one.label;
    EXPECT_NEAR(one.counts.recall(), row[1].get<double>(), 1e-9) << one.label;
    EXPECT_NEAR(one.counts.f1(), row[2].get<double>(), 1e-9) << one.label;
    EXPECT_EQ(static_cast<double>(one.counts.support()), row[3].get<double>()) << one.label;
  }
}

TEST(Scores, AreThoseOfSeqeval) {
  const Json golden = read_json(Path(ONEBIT_SOURCE_DIR) / "tests/tag/golden/scores.json");
  ASSERT_GE(golden.at("cases").size(), 25u);
  for (const Json& one : golden.at("cases")) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    const Scheme scheme = scheme_named(one.at("scheme").get<std::string>()).value();
    const Scores scores = score_tags(sentences_of(one.at("truth").get<std::vector<Tags>>()),
                                     one.at("predicted").get<std::vector<Tags>>(), scheme);
    EXPECT_EQ(scores.metrics.size(), one.at("figures").size());
    for (const auto& [name, wanted] : one.at("figures").items()) {
      EXPECT_NEAR(metrics::value_of(scores.metrics, name), wanted.get<double>(), 1e-9) << name;
    }
    compare(scores.by_label, one.at("by_label"));
    compare(scores.by_label_strict, one.at("by_label_strict"));
  }
}

TEST(Scores, OfPlainTags) {
  const Scores scores = score_tags(sentences_of({{"A", "A", "B"}, {"C"}}),
                                   std::vector<Tags>{{"A", "B", "B"}, {"A"}}, Scheme::kPlain);
  EXPECT_EQ(metrics::value_of(scores.metrics, "accuracy"), 0.5);
  // A: 1 of 2 found, 1 of 2 right. B: 1 of 1, 1 of 2. C: none.
  EXPECT_DOUBLE_EQ(metrics::value_of(scores.metrics, "f1_macro"), (0.5 + 2.0 / 3 + 0) / 3);
  EXPECT_DOUBLE_EQ(metrics::value_of(scores.metrics, "f1_weighted"), (2 * 0.5 + 2.0 / 3) / 4);
  ASSERT_EQ(scores.by_label.size(), 3u);
  EXPECT_EQ(scores.by_label[1].label, "B");
}

TEST(Scores, OfAModelsOutputs) {
  const Sentences sentences = sentences_of({{"O", "B-X"}, {}, {"B-X"}});
  const std::vector<std::string> labels = {"O", "B-X"};
  const std::vector<int32_t> targets = {0, 1, 1};
  const std::vector<float> outputs = {1, 0, 0, 3, 2, 2};
  const Scores scores =
      score({.sentences = sentences, .targets = targets, .labels = labels, .outputs = outputs},
            Scheme::kIob2);
  EXPECT_EQ(scores.sentences, 3);
  EXPECT_EQ(scores.words, 3);
  EXPECT_DOUBLE_EQ(metrics::value_of(scores.metrics, "f1"), 2.0 / 3);
  const double loss = (std::log1p(std::exp(-1.0)) + std::log1p(std::exp(-3.0)) + std::log(2.0)) / 3;
  EXPECT_NEAR(metrics::value_of(scores.metrics, "loss"), loss, 1e-12);
  const auto names = metric_names(Scheme::kIob2);
  ASSERT_EQ(names.size(), scores.metrics.size());
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i].name, scores.metrics[i].name);
}

// Computed by hand like seqeval. There are two entities GPE and two LOC. The model, which only
// knows LOC, labels the first word of a GPE as LOC, finds one LOC and misses the other.
TEST(Scores, AnEntityOfATypeThatTheModelLacksIsMissed) {
  const Sentences sentences =
      sentences_of({{"B-GPE", "I-GPE", "O", "B-LOC"}, {"O", "B-GPE", "B-LOC"}});
  const std::vector<std::string> labels = {"O", "B-LOC"};
  const std::vector<int32_t> targets = {kNoTarget, kNoTarget, 0, 1, 0, kNoTarget, 1};
  // LOC O O LOC, O O O
  const std::vector<float> outputs = {0, 2, 3, 0, 1, 0, 0, 1, 1, 0, 5, 0, 1, 0};
  const Scores scores =
      score({.sentences = sentences, .targets = targets, .labels = labels, .outputs = outputs},
            Scheme::kIob2);
  const auto value = [&](const char* name) { return metrics::value_of(scores.metrics, name); };
  // 1 hit, 1 false alarm (LOC), 3 misses (LOC, and GPE twice).
  EXPECT_DOUBLE_EQ(value("precision"), 1.0 / 2);
  EXPECT_DOUBLE_EQ(value("recall"), 1.0 / 4);
  EXPECT_DOUBLE_EQ(value("f1"), 2.0 / 6);
  // LOC: precision 1/2, recall 1/2. GPE: nothing.
  EXPECT_DOUBLE_EQ(value("f1_macro"), (0.5 + 0) / 2);
  EXPECT_DOUBLE_EQ(value("f1_weighted"), (2 * 0.5 + 2 * 0) / 4);
  EXPECT_DOUBLE_EQ(value("precision_strict"), 1.0 / 2);
  EXPECT_DOUBLE_EQ(value("recall_strict"), 1.0 / 4);
  EXPECT_DOUBLE_EQ(value("accuracy"), 3.0 / 7);
  // Of the four words that have a target three are right by a difference of 1, one is wrong by it.
  const double right = std::log1p(std::exp(-1.0)), wrong = std::log1p(std::exp(1.0));
  EXPECT_NEAR(value("loss"), (3 * right + wrong) / 4, 1e-12);
  ASSERT_EQ(scores.by_label.size(), 2u);
  EXPECT_EQ(scores.by_label[0].label, "GPE");
  EXPECT_EQ(scores.by_label[0].counts.support(), 2);
  EXPECT_EQ(scores.by_label[0].counts.precision(), 0);
  EXPECT_EQ(scores.by_label[0].counts.recall(), 0);
  EXPECT_EQ(scores.by_label[1].counts.support(), 2);
  EXPECT_EQ(scores.by_label[1].counts.f1(), 0.5);
}

TEST(Scores, TablesAndJsonHaveBothModes) {
  const Scores scores =
      score_tags(sentences_of({{"I-X", "O"}}), std::vector<Tags>{{"I-X", "O"}}, Scheme::kIob2);
  const std::string text = text_of(scores);
  EXPECT_THAT(text, HasSubstr("f1_strict         0.0000"));
  EXPECT_THAT(text, HasSubstr("strict iob2"));
  const Json json = json_of(scores);
  EXPECT_EQ(json.at("scheme"), "iob2");
  EXPECT_EQ(json.at("metrics").at("f1"), 1.0);
  EXPECT_EQ(json.at("by_label")[0].at("count"), 1);
  EXPECT_TRUE(json.at("by_label_strict").empty());
  const Scores plain = score_tags(sentences_of({{"A"}}), std::vector<Tags>{{"A"}}, Scheme::kPlain);
  EXPECT_THAT(text_of(plain), HasSubstr("accuracy     1.0000"));
  EXPECT_FALSE(json_of(plain).contains("by_label_strict"));
}

}  // namespace
}  // namespace onebit::tag
