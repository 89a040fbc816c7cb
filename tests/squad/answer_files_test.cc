#include "onebit/apps/squad/answer_files.h"

#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::squad {
namespace {

TEST(AnswerFiles, AreThePublishedOnes) {
  const TemporaryFolder folder;
  Dataset data;
  data.questions = {{.id = "a"}, {.id = "b"}};
  data.problems = {{"left out", "why"}, {"a", "its id was used before"}};
  const std::vector<DecodedAnswer> answers = {{"here", {{"here", 1, 3, 3}}, 0},
                                              {"", {{"", 1, 0, 0}}, 0}};
  write_answers({folder.path() / "p.json", folder.path() / "n.json", folder.path() / "o.json"},
                data, answers);
  EXPECT_EQ(read_file(folder.path() / "p.json"),
            "{\n    \"a\": \"here\",\n    \"b\": \"\",\n    \"left out\": \"\"\n}\n");
  EXPECT_EQ(read_file(folder.path() / "o.json"), "{\n    \"a\": 0.0,\n    \"b\": 0.0\n}\n");
  const std::string n_best = read_file(folder.path() / "n.json");
  EXPECT_TRUE(n_best.starts_with(
      "{\n    \"a\": [\n        {\n            \"text\": \"here\",\n            \"probability\": "
      "1.0,\n            \"start_logit\": 3.0,\n            \"end_logit\": 3.0\n        }\n    ]"))
      << n_best;
  EXPECT_EQ(predictions_of(data, answers).at("left out"), "");
}

TEST(AnswerFiles, AreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "x.json";
  write_file_atomically(path, R"({"b": "Rome", "a": ""})");
  EXPECT_EQ(read_predictions(path), (Predictions{{"a", ""}, {"b", "Rome"}}));
  EXPECT_NE(message_of([&] { read_null_odds(path); }).find("question b: a number was expected"),
            std::string::npos);
  write_file_atomically(path, R"({"b": 1.5, "a": -2})");
  EXPECT_EQ(read_null_odds(path), (NullOdds{{"b", 1.5}, {"a", -2}}));
  EXPECT_NE(message_of([&] { read_predictions(path); }).find("question b: a string was expected"),
            std::string::npos);
  write_file_atomically(path, "[]");
  EXPECT_NE(message_of([&] { read_predictions(path); }).find("an object of question ids"),
            std::string::npos);
}

}  // namespace
}  // namespace onebit::squad
