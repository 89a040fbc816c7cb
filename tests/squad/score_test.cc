#include "onebit/apps/squad/score.h"
#include "onebit/ground/base/json.h"

#include <gtest/gtest.h>

#include "onebit/apps/squad/python_text.h"
#include "tests/base/message_of.h"

namespace onebit::squad {
namespace {

Predictions predictions_in(const Json& json) {
  Predictions predictions;
  for (const auto& item : json.items()) predictions[item.key()] = item.value();
  return predictions;
}

// Every case is printed as the official script prints it, to the last digit.
TEST(Score, EqualsTheOfficialScripts) {
  const Json golden = read_json(Path(ONEBIT_SOURCE_DIR) / "tests/squad/golden/scores.json");
  int with_odds = 0;
  for (const Json& one : golden.at("cases")) {
    const std::string rules = one.at("rules");
    const Dataset dataset =
        dataset_from_json(golden.at("datasets").at(rules), "golden", Use::kScore);
    ASSERT_EQ(rules_for(dataset), rules == "1.1" ? ScoreRules::kVersion1 : ScoreRules::kVersion2);
    NullOdds odds;
    if (one.contains("null_odds")) {
      for (const auto& item : one.at("null_odds").items()) {
        odds.emplace_back(item.key(), item.value());
      }
      ++with_odds;
    }
    const Score score =
        score_predictions(dataset, predictions_in(one.at("predictions")), rules_for(dataset),
                          odds.empty() ? nullptr : &odds, one.value("threshold", 1.0));
    EXPECT_EQ(python_json(official_json(score), rules == "1.1" ? 0 : 2),
              one.at("printed").get<std::string>())
        << one.at("name");
  }
  EXPECT_GE(golden.at("cases").size(), 10u);
  EXPECT_GE(with_odds, 10);
}

Json question(const char* id, const Json& answers) {
  return {{"id", id}, {"question", "?"}, {"answers", answers}};
}

Json file_of(const Json& questions) {
  const Json paragraphs = Json::array({Json{{"context", "c"}, {"qas", questions}}});
  return {{"data", Json::array({Json{{"paragraphs", paragraphs}}})}};
}

TEST(Score, ListsMissingPredictions) {
  const Json answer = Json::array({Json{{"text", "x"}, {"answer_start", 0}}});
  const Dataset dataset = dataset_from_json(
      file_of(Json::array({question("a", answer), question("b", answer)})), "two", Use::kScore);
  const Score score = score_predictions(dataset, {{"a", "x"}}, ScoreRules::kVersion1);
  EXPECT_EQ(score.missing, std::vector<std::string>{"b"});
  EXPECT_EQ(score.all.exact, 50);
  const Score second = score_predictions(dataset, {{"a", "x"}}, ScoreRules::kVersion2);
  EXPECT_EQ(second.missing, std::vector<std::string>{"b"});
  EXPECT_EQ(second.all.exact, 100);
  EXPECT_EQ(second.all.total, 1);
}

TEST(Score, RefusesWhatHasNoScore) {
  const Dataset dataset =
      dataset_from_json(file_of(Json::array({question("a", Json::array())})), "none", Use::kScore);
  EXPECT_NE(message_of([&] {
              score_predictions(dataset, {{"a", "x"}}, ScoreRules::kVersion1);
            }).find("question a"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              score_predictions(dataset, {}, ScoreRules::kVersion2);
            }).find("no question has a prediction"),
            std::string::npos);
  const NullOdds odds = {{"b", 1.0}};
  EXPECT_NE(message_of([&] {
              score_predictions(dataset, {{"a", "x"}}, ScoreRules::kVersion2, &odds);
            }).find("no entry for the question a,"),
            std::string::npos);
}

}  // namespace
}  // namespace onebit::squad
