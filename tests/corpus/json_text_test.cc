#include "onebit/corpus/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/message_of.h"

namespace onebit::corpus {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> texts_of(const std::string& lines) {
  std::vector<std::string> texts;
  for_each_json_text({.source = "f", .first_line = 7, .text = lines},
                     [&](std::string_view text) { texts.emplace_back(text); });
  return texts;
}

TEST(JsonText, IsThatOfTheTopLevelAlone) {
  EXPECT_THAT(texts_of("{\"id\": 1, \"text\": \"l\\u006cama\"}\n\n"
                       "{\"meta\": {\"text\": \"no\"}, \"text\": \"a\\nb\", \"x\": [1, 2.5]}\n"
                       "{\"text\": \"\"}"),
              ElementsAre("llama", "a\nb", ""));
}

TEST(JsonText, BadLinesAreErrorsWithPathAndLine) {
  const auto message = [](const std::string& line) {
    return message_of(
        [&] { texts_of("{\"text\": \"fine\"}\n" + line + "\n{\"text\": \"fine\"}\n"); });
  };
  EXPECT_THAT(message("{\"text\": \"cut"), AllOf(HasSubstr("f:8"), HasSubstr("invalid JSON")));
  EXPECT_THAT(message("{\"text\": \"a\"} x"), AllOf(HasSubstr("f:8"), HasSubstr("invalid JSON")));
  EXPECT_THAT(message("{\"body\": \"a\"}"), AllOf(HasSubstr("f:8"), HasSubstr("no \"text\"")));
  EXPECT_THAT(message("{\"text\": 5}"), AllOf(HasSubstr("f:8"), HasSubstr("not a string")));
  EXPECT_THAT(message("{\"text\": [\"a\"]}"), AllOf(HasSubstr("f:8"), HasSubstr("not a string")));
  EXPECT_THAT(message("{\"text\": null}"), HasSubstr("not a string"));
  EXPECT_THAT(message("{\"text\": \"a\", \"text\": \"b\"}"), HasSubstr("given twice"));
  EXPECT_THAT(message("[\"a\"]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(message("\"a\""), HasSubstr("not a JSON object"));
  EXPECT_THAT(message("5"), HasSubstr("not a JSON object"));
}

}  // namespace
}  // namespace onebit::corpus
