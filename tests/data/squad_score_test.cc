#include "onebit/data/squad_score.h"

#include <gtest/gtest.h>

#include "onebit/data/python_json.h"
#include "tests/base/message_of.h"

namespace onebit::data {
namespace {

Predictions predictions_in(const Json& json) {
  Predictions predictions;
  for (const auto& item : json.items()) predictions[item.key()] = item.value();
  return predictions;
}

// Every case is printed as the official script prints it, to the last digit.
TEST(SquadScore, EqualsTheOfficialScripts) {
  const Json golden = read_json(Path(ONEBIT_SOURCE_DIR) / "tests/data/golden/squad_scores.json");
  int with_odds = 0;
  for (const Json& one : golden.at("cases")) {
    const std::string rules = one.at("rules");
    const SquadDataset dataset =
        squad_from_json(golden.at("datasets").at(rules), "golden", SquadUse::kScore);
    ASSERT_EQ(rules_for(dataset), rules == "1.1" ? ScoreRules::kVersion1 : ScoreRules::kVersion2);
    NullOdds odds;
    if (one.contains("null_odds")) {
      for (const auto& item : one.at("null_odds").items()) {
        odds.emplace_back(item.key(), item.value());
      }
      ++with_odds;
    }
    const SquadScore score =
        score_squad(dataset, predictions_in(one.at("predictions")), rules_for(dataset),
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

TEST(SquadScore, TellsWhatIsMissing) {
  const Json answer = Json::array({Json{{"text", "x"}, {"answer_start", 0}}});
  const SquadDataset dataset =
      squad_from_json(file_of(Json::array({question("a", answer), question("b", answer)})), "two",
                      SquadUse::kScore);
  const SquadScore score = score_squad(dataset, {{"a", "x"}}, ScoreRules::kVersion1);
  EXPECT_EQ(score.missing, std::vector<std::string>{"b"});
  EXPECT_EQ(score.all.exact, 50);
  const SquadScore second = score_squad(dataset, {{"a", "x"}}, ScoreRules::kVersion2);
  EXPECT_EQ(second.missing, std::vector<std::string>{"b"});
  EXPECT_EQ(second.all.exact, 100);
  EXPECT_EQ(second.all.total, 1);
}

TEST(SquadScore, RefusesWhatHasNoScore) {
  const SquadDataset dataset = squad_from_json(file_of(Json::array({question("a", Json::array())})),
                                               "none", SquadUse::kScore);
  EXPECT_NE(message_of([&] {
              score_squad(dataset, {{"a", "x"}}, ScoreRules::kVersion1);
            }).find("question a"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              score_squad(dataset, {}, ScoreRules::kVersion2);
            }).find("no question has a prediction"),
            std::string::npos);
  const NullOdds odds = {{"b", 1.0}};
  EXPECT_NE(message_of([&] {
              score_squad(dataset, {{"a", "x"}}, ScoreRules::kVersion2, &odds);
            }).find("lack question a"),
            std::string::npos);
}

TEST(PythonJson, WritesNumbersAsPythonDoes) {
  const std::pair<double, const char*> numbers[] = {{0, "0.0"},
                                                    {-0.0, "-0.0"},
                                                    {1, "1.0"},
                                                    {0.1, "0.1"},
                                                    {1e-4, "0.0001"},
                                                    {1e-5, "1e-05"},
                                                    {-2.5e-7, "-2.5e-07"},
                                                    {1e15, "1000000000000000.0"},
                                                    {1e16, "1e+16"},
                                                    {100.0 / 3, "33.333333333333336"}};
  for (const auto& [number, text] : numbers) EXPECT_EQ(python_json(number, 0), text);
  const Json value = {{"\u00e9\U0001f600\n\x7f", Json::array({1, 0.5, "x", nullptr, true})},
                      {"empty", Json::object()}};
  EXPECT_EQ(python_json(value, 0),
            R"({"\u00e9\ud83d\ude00\n\u007f": [1, 0.5, "x", null, true], "empty": {}})");
  EXPECT_EQ(python_json(value, 2),
            "{\n  \"\\u00e9\\ud83d\\ude00\\n\\u007f\": [\n    1,\n    0.5,\n    \"x\",\n    "
            "null,\n    true\n  ],\n  \"empty\": {}\n}");
}

}  // namespace
}  // namespace onebit::data
