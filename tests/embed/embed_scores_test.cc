#include "onebit/apps/embed/embed_scores.h"
#include "onebit/ground/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "onebit/ground/metrics/prediction_scores.h"

namespace onebit::embed {
namespace {

using ::testing::HasSubstr;

// Vectors on a circle: their cosine is the cosine of the angle between them. Their lengths differ.
std::vector<float> on_a_circle(const std::vector<double>& degrees) {
  std::vector<float> vectors;
  for (size_t i = 0; i < degrees.size(); ++i) {
    const double angle = degrees[i] * std::numbers::pi / 180;
    const double length = 1 + static_cast<double>(i);
    vectors.push_back(static_cast<float>(length * std::cos(angle)));
    vectors.push_back(static_cast<float>(length * std::sin(angle)));
  }
  return vectors;
}

Examples examples_of(Kind kind, const std::vector<std::string>& texts,
                     std::vector<float> scores = {}) {
  Examples examples{.kind = kind};
  for (const std::string& text : texts) examples.texts.all.push_back({.text = text});
  examples.scores = std::move(scores);
  return examples;
}

double figure(const Scores& scores, const char* name) {
  return metrics::value_of(scores.metrics, name);
}

TEST(EmbedScores, PlacesOfPositives) {
  // The positives of a, b, c are 5, 30 and 100 degrees away. Positives of others may be nearer.
  const Examples pairs = examples_of(Kind::kPairs, {"a", "pa", "b", "pb", "c", "pc"});
  const std::vector<float> vectors = on_a_circle({0, 5, 20, 50, 60, 160});
  // a: 5 | 50, 160 -> 1. b: 15, 30 -> 2. c: 55, 10, 100 -> 3.
  for (const int threads : {1, 3}) {
    const Scores scores = score(pairs, vectors, threads);
    EXPECT_EQ(scores.examples, 3);
    EXPECT_DOUBLE_EQ(figure(scores, "accuracy"), 1.0 / 3);
    EXPECT_DOUBLE_EQ(figure(scores, "mrr"), (1 + 1.0 / 2 + 1.0 / 3) / 3);
    EXPECT_DOUBLE_EQ(figure(scores, "recall_at_10"), 1);
  }
}

TEST(EmbedScores, TheSameTextIsOneCandidateAndOtherPositivesAreNoRivals) {
  // The second pair repeats the first positive, the third is another positive of the same anchor.
  const Examples pairs = examples_of(Kind::kPairs, {"a", "p", "b", "p", "a", "q"});
  const Scores scores = score(pairs, on_a_circle({0, 10, 12, 10, 0, 5}), 1);
  // a: q is nearer than p, but is its own. b: p (2) before q (7). a: q first.
  EXPECT_DOUBLE_EQ(figure(scores, "accuracy"), 1);
}

TEST(EmbedScores, AModelThatDistinguishesNothingFindsNothing) {
  const Examples pairs = examples_of(Kind::kPairs, {"a", "pa", "b", "pb", "c", "pc"});
  const Scores scores = score(pairs, std::vector<float>(12, 1), 1);
  EXPECT_DOUBLE_EQ(figure(scores, "accuracy"), 0);
  EXPECT_DOUBLE_EQ(figure(scores, "mrr"), 1.0 / 3);
  // Nor if its vectors are not finite.
  EXPECT_DOUBLE_EQ(figure(score(pairs, std::vector<float>(12, std::nanf("")), 1), "accuracy"), 0);
  EXPECT_DOUBLE_EQ(figure(score(pairs, std::vector<float>(12, 0), 1), "accuracy"), 0);
}

TEST(EmbedScores, TripletsHaveNegativesAsWell) {
  const Examples triplets = examples_of(Kind::kTriplets, {"a", "pa", "na", "b", "pb", "nb"});
  const Scores scores = score(triplets, on_a_circle({0, 10, 20, 90, 110, 95}), 1);
  EXPECT_DOUBLE_EQ(figure(scores, "triplet_accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(figure(scores, "accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(figure(scores, "mrr"), (1 + 0.5) / 2);
  EXPECT_EQ(scores.metrics.front().name, "triplet_accuracy");
}

TEST(EmbedScores, CosinesFollowScores) {
  const std::vector<float> truth = {1, 0.9f, 0.2f, 0.4f};
  const Examples scored =
      examples_of(Kind::kScored, {"a", "b", "c", "d", "e", "f", "g", "h"}, truth);
  const Scores scores = score(scored, on_a_circle({0, 1, 10, 40, 7, 97, 0, 60}), 2);
  const std::vector<double> cosines = {std::cos(1 * std::numbers::pi / 180),
                                       std::cos(30 * std::numbers::pi / 180), 0, 0.5};
  const std::vector<double> wanted(truth.begin(), truth.end());
  // Vectors are f32.
  EXPECT_DOUBLE_EQ(figure(scores, "spearman"), 1);
  EXPECT_NEAR(figure(scores, "pearson"), metrics::pearson_correlation(cosines, wanted), 1e-6);
  EXPECT_NEAR(figure(scores, "mse"), metrics::mean_squared_error(cosines, wanted), 1e-6);
}

TEST(EmbedScores, AreShownByName) {
  const Examples scored = examples_of(Kind::kScored, {"a", "b", "c", "d"}, {0.5f, 0.5f});
  const Scores scores = score(scored, on_a_circle({0, 1, 2, 4}), 1);
  const Json json = json_of(scores);
  EXPECT_EQ(json.at("kind"), "scored pairs");
  EXPECT_TRUE(json.at("metrics").at("spearman").is_null());  // the scores are all the same
  EXPECT_TRUE(json.at("metrics").at("mse").is_number());
  EXPECT_THAT(text_of(scores), HasSubstr("scored pairs"));
  EXPECT_THAT(text_of(scores), HasSubstr("nan: predictions or true values that are all the same"));
}

}  // namespace
}  // namespace onebit::embed
