// /answer.

#include "onebit/apps/squad/answerer.h"
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
    EXPECT_EQ(text.substr(begin, end - begin), one["answer"]);
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
}

}  // namespace
}  // namespace onebit::serve
