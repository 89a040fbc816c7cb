#include "onebit/apps/squad/dataset.h"

#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/squad/dataset_json.h"

namespace onebit::squad {
namespace {

using dataset_json::file_of;
using dataset_json::question;

constexpr const char* kContext = "The caf\u00e9 (1895-1943) stood in\tParis.\u202fIt is gone.";

Dataset read(const std::vector<Json>& questions, Use use = Use::kTrain) {
  return dataset_from_json(file_of(kContext, questions), "test.json", use);
}

TEST(Dataset, FindsTheWordsOfAnswers) {
  const Dataset data = read({question("a", {{"1895", 10}}), question("b", {{"in Paris", 27}})});
  ASSERT_EQ(data.questions.size(), 2u);
  EXPECT_TRUE(data.problems.empty());
  EXPECT_EQ(data.questions[0].answers[0].first_word, 2);
  EXPECT_EQ(data.questions[0].answers[0].last_word, 2);
  EXPECT_EQ(data.questions[1].answers[0].first_word, 4) << "white space may differ";
  EXPECT_EQ(data.questions[1].answers[0].last_word, 5);
}

TEST(Dataset, TakesTheFirstAnswerAtItsOffset) {
  const Dataset data = read({question("a", {{"Rome", 30}, {"Paris", 30}, {"gone", 43}})});
  ASSERT_EQ(data.questions.size(), 1u);
  ASSERT_EQ(data.questions[0].answers.size(), 1u);
  EXPECT_EQ(data.questions[0].answers[0].text, "Paris");
}

TEST(Dataset, KnowsWhetherQuestionsMayBeUnanswerable) {
  const Json answered = question("a", {{"1895", 10}}), bare = question("b", {});
  EXPECT_FALSE(has_unanswerable(read({answered}, Use::kPredict)));
  EXPECT_FALSE(has_unanswerable(read({bare}, Use::kPredict))) << "a file of questions alone";
  EXPECT_TRUE(has_unanswerable(read({answered, bare}, Use::kPredict)));
  Json marked = bare;
  marked["is_impossible"] = true;
  EXPECT_TRUE(has_unanswerable(read({marked}, Use::kScore)));
  for (const char* version : {"v2.0", "2.0"}) {
    Json file = file_of(kContext, {answered});
    file["version"] = version;
    EXPECT_TRUE(has_unanswerable(dataset_from_json(file, "test.json", Use::kScore))) << version;
  }
}

TEST(Dataset, ChecksumSeesWhatTrainingSees) {
  const uint32_t sum =
      checksum(read({question("a", {{"1895", 10}}), question("b", {{"gone", 43}})}));
  EXPECT_EQ(sum, checksum(read({question("c", {{"1895", 10}}), question("d", {{"gone", 43}})})))
      << "ids are not seen";
  EXPECT_NE(sum, checksum(read({question("b", {{"gone", 43}}), question("a", {{"1895", 10}})})));
  EXPECT_NE(sum, checksum(read({question("a", {{"1895", 10}}), question("b", {{"Paris", 30}})})));
}

TEST(Dataset, LeavesBadQuestionsOutAndReportsThem) {
  std::vector<Json> questions = {
      question("good", {{"Paris", 30}}),    question("elsewhere", {{"Rome", 30}}),
      question("beyond", {{"gone", 4000}}), question("before", {{"gone", -3}}),
      question("good", {{"gone", 43}}),     question("none", {}),
      question("blank", {{"Paris", 30}}),   question("past end", {{"gone. Yes", 43}})};
  questions[6]["question"] = " \t";
  const Dataset data = read(questions);
  ASSERT_EQ(data.questions.size(), 1u);
  ASSERT_EQ(data.problems.size(), 7u);
  EXPECT_EQ(data.problems[0].id, "elsewhere");
  EXPECT_NE(data.problems[0].reason.find("\"Rome\" is not at character 30"), std::string::npos);
  EXPECT_NE(data.problems[3].reason.find("used before"), std::string::npos);
  EXPECT_NE(data.problems[4].reason.find("no answer"), std::string::npos);
  EXPECT_NE(data.problems[5].reason.find("empty"), std::string::npos);
  const std::string summary = problem_summary(data);
  EXPECT_NE(summary.find("7 of 8 questions were left out: elsewhere: "), std::string::npos);
  EXPECT_NE(summary.find("; ..."), std::string::npos);
}

TEST(Dataset, PredictingNeedsNoAnswersButAContext) {
  const Dataset data = read({question("a", {}), question("b", {{"Rome", 3}})}, Use::kPredict);
  EXPECT_EQ(data.questions.size(), 2u);
  Json file = file_of(kContext, {question("a", {})});
  file["data"][0]["paragraphs"].push_back(
      {{"context", " \n"}, {"qas", Json::array({question("empty", {})})}});
  const Dataset half = dataset_from_json(file, "half", Use::kPredict);
  ASSERT_EQ(half.problems.size(), 1u);
  EXPECT_EQ(half.problems[0].id, "empty");
  EXPECT_EQ(dataset_from_json(file, "half", Use::kScore).questions.size(), 2u);
}

TEST(Dataset, ReadsVersion2) {
  std::vector<Json> questions = {question("a", {{"Paris", 30}}), question("b", {})};
  questions[1]["is_impossible"] = true;
  const Dataset data = read(questions);
  ASSERT_EQ(data.questions.size(), 2u);
  EXPECT_FALSE(data.questions[0].impossible);
  EXPECT_TRUE(data.questions[1].impossible);
}

TEST(Dataset, OtherSpellingsOfIsImpossible) {
  Json one = question("a", {{"Paris", 30}});
  for (const Json& yes : {Json(1), Json("true"), Json("True")}) {
    one["is_impossible"] = yes;
    EXPECT_TRUE(read({one}).questions.at(0).impossible) << yes;
  }
  for (const Json& no : {Json(0), Json("false"), Json("False"), Json()}) {
    one["is_impossible"] = no;
    EXPECT_FALSE(read({one}).questions.at(0).impossible) << no;
  }
  one["is_impossible"] = "no";
  EXPECT_NE(message_of([&] { read({one}); })
                .find("is_impossible: true or false was expected, got "
                      "\"no\""),
            std::string::npos);
}

// A double has 53 bits: "18446744073709551616" and the next 2048 numbers would be one id.
TEST(Dataset, IdsBeyond64BitsAreRefused) {
  Json one = question("a", {{"Paris", 30}});
  one["id"] = Json::parse("18446744073709551615");
  EXPECT_EQ(read({one}).questions.at(0).id, "18446744073709551615");
  one["id"] = Json::parse("18446744073709551617");
  EXPECT_NE(message_of([&] { read({one}); })
                .find("qas[0].id: 1.8446744073709552e+19 is a number "
                      "beyond 64 bits"),
            std::string::npos);
}

TEST(Dataset, ErrorsNameThePlaceInTheFile) {
  const auto error_of = [](const Json& file) {
    return message_of([&] { dataset_from_json(file, "f.json", Use::kTrain); });
  };
  EXPECT_NE(error_of({{"dat", 1}}).find("f.json: data: is missing"), std::string::npos);
  EXPECT_NE(error_of({{"data", 3}}).find("f.json: data: a list was expected"), std::string::npos);
  Json file = file_of(kContext, {question("a", {{"Paris", 30}})});
  Json& start = file["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"];
  const Json right = start;
  for (const Json& same : {Json(right.get<double>()), right}) {
    start = same;
    EXPECT_EQ(error_of(file), "(no error)");
  }
  for (const auto& [wrong, shown] : {std::pair<Json, std::string>("3", "\"3\""),
                                     {1e30, "1e+30"},
                                     {1.5, "1.5"},
                                     {Json(), "null"},
                                     {true, "true"},
                                     {uint64_t{1} << 63, "9223372036854775808"}}) {
    start = wrong;
    const std::string message = error_of(file);
    EXPECT_NE(message.find("f.json: data[0].paragraphs[0].qas[0].answers[0].answer_start: of the "
                           "question \"a\", a whole number was expected"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("got " + shown), std::string::npos) << message;
  }
  // Nothing is looked for where there is no answer.
  file["data"][0]["paragraphs"][0]["qas"][0]["is_impossible"] = true;
  start = -1;
  EXPECT_EQ(error_of(file), "(no error)");
  EXPECT_NE(error_of(file_of(kContext, {question("a", {})})).find("no question that can be used"),
            std::string::npos);
}

TEST(Dataset, IdsAndVersionsMayBeNumbers) {
  Json first = question("a", {{"1895", 10}}), second = question("b", {{"gone", 43}});
  first["id"] = 7;
  second["id"] = 8;
  Json file = file_of(kContext, {first, second});
  file["version"] = 2.0;
  const Dataset data = dataset_from_json(file, "test.json", Use::kTrain);
  ASSERT_EQ(data.questions.size(), 2u);
  EXPECT_EQ(data.questions[0].id, "7");
  EXPECT_EQ(data.questions[1].id, "8");
  EXPECT_TRUE(has_unanswerable(data));
}

TEST(Dataset, AnswersMayBeTwoLists) {
  Json answered = question("a", {}), bare = question("b", {});
  answered["answers"] = {{"text", {"Rome", "Paris"}}, {"answer_start", {30, 30}}};
  bare["answers"] = {{"text", Json::array()}, {"answer_start", Json::array()}};
  const Dataset data = read({answered, bare}, Use::kScore);
  ASSERT_EQ(data.questions.size(), 2u);
  EXPECT_EQ(data.questions[0].answers[1].text, "Paris");
  EXPECT_TRUE(data.questions[1].answers.empty());
  EXPECT_TRUE(has_unanswerable(data));
  const Dataset train = read({answered});
  ASSERT_EQ(train.questions.size(), 1u);
  EXPECT_EQ(train.questions[0].answers[0].text, "Paris");
  answered["answers"]["answer_start"] = {30};
  EXPECT_NE(message_of([&] {
              read({answered});
            }).find("qas[0].answers.answer_start: a list of 2 numbers was expected"),
            std::string::npos);
}

// As Hugging Face's datasets writes them, and as the example run_qa.py of transformers reads them.
TEST(Dataset, QuestionsMayHaveTheirOwnContexts) {
  const auto row = [](const char* id, const char* context, const Json& texts, const Json& starts) {
    return Json{{"id", id},
                {"title", "t"},
                {"context", context},
                {"question", "What?"},
                {"answers", {{"text", texts}, {"answer_start", starts}}}};
  };
  const Json rows = {row("a", "In Paris.", {"Paris"}, {3}),
                     row("b", "In Paris.", Json::array(), Json::array()),
                     row("c", "In Rome.", {"Rome"}, {3})};
  const auto expect_read = [](const Dataset& data) {
    EXPECT_EQ(problem_summary(data), "");
    ASSERT_EQ(data.questions.size(), 3u);
    ASSERT_EQ(data.paragraphs.size(), 2u) << "one context is not stored twice";
    EXPECT_EQ(data.questions[1].paragraph, 0u);
    EXPECT_EQ(data.questions[2].paragraph, 1u);
    EXPECT_EQ(data.questions[2].answers[0].first_word, 1);
    EXPECT_TRUE(data.questions[1].impossible);
    EXPECT_TRUE(has_unanswerable(data));
  };
  expect_read(dataset_from_json(rows, "rows.json", Use::kTrain));
  expect_read(dataset_from_json({{"data", rows}}, "rows.json", Use::kTrain));
  const TemporaryFolder folder;
  std::string lines;
  for (const Json& one : rows) lines += one.dump() + "\n";
  write_file_atomically(folder / "rows.jsonl", lines);
  expect_read(read_dataset(folder / "rows.jsonl", Use::kTrain));
  write_file_atomically(folder / "rows.jsonl", lines + "{\"question\": \"a\"}\n");
  EXPECT_NE(message_of([&] {
              read_dataset(folder / "rows.jsonl", Use::kTrain);
            }).find("rows.jsonl:4: context: is missing"),
            std::string::npos);
  EXPECT_EQ(read_dataset(folder / "rows.jsonl", Use::kTrain, corpus::LeftOut::kBad).problems.size(),
            1u);
}

TEST(Dataset, BadQuestionsAreLeftOutWhereTheOptionIsGiven) {
  Json bad = question("a", {{"1895", 10}}), missing = question("b", {{"gone", 43}});
  bad["question"] = {1, 2};
  missing["question"] = nullptr;
  const Json good = question("c", {{"gone", 43}});
  const auto with = [&](const std::vector<Json>& questions, corpus::LeftOut left_out) {
    return dataset_from_json(file_of(kContext, questions), "test.json", Use::kTrain, left_out);
  };
  EXPECT_NE(message_of([&] {
              with({bad, good}, corpus::LeftOut::kMissing);
            }).find("--skip-bad-records"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              with({missing, good}, corpus::LeftOut::kNothing);
            }).find("is null"),
            std::string::npos);
  EXPECT_EQ(with({missing, good}, corpus::LeftOut::kMissing).problems.size(), 1u);
  const Dataset data = with({bad, missing, good}, corpus::LeftOut::kBad);
  EXPECT_EQ(data.questions.size(), 1u);
  EXPECT_EQ(data.problems.size(), 2u);
}

TEST(Dataset, WhatPythonWritesIsRead) {
  const TemporaryFolder folder;
  const Path path = folder / "nan.json";
  write_file_atomically(
      path,
      "{\"score\": NaN, \"data\": [{\"paragraphs\": [{\"context\": \"It is \\ud83d gone.\", "
      "\"qas\": [{\"id\": 1, \"question\": \"What?\", \"weight\": 1e999}]}]}]}");
  const Dataset data = read_dataset(path, Use::kPredict);
  ASSERT_EQ(data.paragraphs.size(), 1u);
  EXPECT_EQ(data.paragraphs[0].context, "It is \xEF\xBF\xBD gone.");
}

}  // namespace
}  // namespace onebit::squad
