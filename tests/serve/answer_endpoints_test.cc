// /answer.

#include "onebit/apps/squad/answerer.h"
#include "tests/base/message_of.h"
#include "tests/serve/served_models.h"

namespace onebit::serve {
namespace {

class AnswerService : public ServiceTest {};

TEST_F(AnswerService, AnswerFindsThePlaceInTheContext) {
  write_small_reader(at("reads"));
  serve({"reads"});
  const std::string text = "Zoë, the king of birds, was here in the year 1900.";
  const Json body = {{"question", "who was here?"}, {"context", text}, {"top_n", 3}};
  const Json reply = answer("/answer", json_text(body));
  Context context = Context::cpu(1);
  squad::Answerer predictor(context, at("reads"));
  const squad::DecodedAnswer wanted =
      predictor.answer({.question = "who was here?", .context = text}, {});
  EXPECT_EQ(reply["answer"], wanted.text);
  ASSERT_EQ(reply["answers"].size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Json& one = reply["answers"][i];
    EXPECT_EQ(one["answer"], wanted.best[i].text);
    EXPECT_NEAR(one["score"].get<double>(), wanted.best[i].probability, 1e-6);
    const auto begin = one["start_byte"].get<size_t>(), end = one["end_byte"].get<size_t>();
    EXPECT_EQ(text.substr(begin, end - begin), one["answer"].get<std::string>());
    const size_t before = begin > 2 ? 1 : 0;  // the second byte of "ë"
    EXPECT_EQ(one["start"].get<size_t>(), begin - before);
  }
  EXPECT_FALSE(reply.contains("null_odds"));
  EXPECT_TRUE(
      answer("/answer", R"({"question": "a", "context": "b c", "may_be_unanswerable": true})")
          .contains("null_odds"));
  expect_refusal("/answer", R"({"question": "a"})", 422, "Validation", "`context` is missing");
  expect_refusal("/answer", R"({"question": " ", "context": "a"})", 400, "Empty", "blank");
  expect_refusal("/answer", R"({"question": "a", "context": "b", "top_n": 0})", 422, "Validation",
                 "`top_n`");
  Json longer = {{"question", ""}, {"context", "b"}, {"truncate", false}};
  for (int i = 0; i < 300; ++i) longer["question"] = longer["question"].get<std::string>() + "w ";
  expect_refusal("/answer", json_text(longer), 422, "Validation", "`question` must have at most");
  longer["truncate"] = true;
  EXPECT_TRUE(answer("/answer", json_text(longer)).contains("answer"));
}

// As `onebit squad ask` does.
TEST_F(AnswerService, AModelOfARunAnswersAsItsRecipeSays) {
  write_small_reader(at("reads"));
  std::string text;
  for (int word = 0; word < 40; ++word) text += fmt::format("the king {} ", word);
  Context context = Context::cpu(1);
  const auto answered = [&] {
    squad::Answerer predictor(context, at("reads"));
    return predictor.answer({.question = "who was here?", .context = text}).best[0];
  };
  const double of_folder = answered().probability;
  write_file_atomically(at("reads") / "recipe.json",
                        R"({"task": "squad", "data": {"max_sequence_length": 32, "doc_stride": 8,
                            "max_question_length": 8}, "answers": {"n_best_size": 3}})");
  const squad::AnswerCandidate wanted = answered();
  EXPECT_GT(std::abs(wanted.probability - of_folder), 1e-5);
  serve({"reads"});
  EXPECT_EQ(json_of(get("/info"))["max_input_length"], 32);
  const Json reply = answer(
      "/answer", json_text({{"question", "who was here?"}, {"context", text}, {"top_n", 5}}));
  ASSERT_EQ(reply["answers"].size(), 3u);
  EXPECT_EQ(reply["answers"][0]["answer"], wanted.text);
  EXPECT_NEAR(reply["answers"][0]["score"].get<double>(), wanted.probability, 1e-6);
}

// The length is that of the windows, as for `onebit squad predict`.
TEST_F(AnswerService, ALengthThatIsGivenIsThatOfItsWindows) {
  write_small_reader(at("reads"));
  std::string text;
  for (int word = 0; word < 40; ++word) text += fmt::format("the king {} ", word);
  const std::string body = json_text({{"question", "who was here?"}, {"context", text}});
  options_.endpoints.max_sequence_length = 32;
  serve({"reads"});
  EXPECT_EQ(json_of(get("/info"))["max_input_length"], 32);
  Context context = Context::cpu(1);
  squad::Answerer predictor(context, at("reads"));
  squad::AnswererOptions wanted;
  wanted.is_window_chosen = true;
  wanted.features = {.max_sequence_length = 32,
                     .doc_stride = 128 * 32 / 384,
                     .max_question_length = 64 * 32 / 384};
  const squad::DecodedAnswer answered =
      predictor.answer({.question = "who was here?", .context = text}, wanted);
  const Json reply = answer("/answer", body)["answers"][0];
  EXPECT_EQ(reply["answer"], answered.text);
  EXPECT_NEAR(reply["score"].get<double>(), answered.best[0].probability, 1e-6);
  EXPECT_GT(
      std::abs(
          answered.best[0].probability -
          predictor.answer({.question = "who was here?", .context = text}, {}).best[0].probability),
      1e-5);
  options_.endpoints.max_sequence_length = 5;  // [CLS] a [SEP] b [SEP]
  serve({"reads"});
  EXPECT_EQ(ask("/answer", body).status, 200);
  options_.endpoints.max_sequence_length = 4;
  EXPECT_THAT(message_of([&] { serve({"reads"}); }), testing::HasSubstr("at least 5"));
  options_.endpoints.max_sequence_length = 65;
  EXPECT_THAT(message_of([&] { serve({"reads"}); }), testing::HasSubstr("64 positions"));
}

}  // namespace
}  // namespace onebit::serve
