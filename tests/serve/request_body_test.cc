#include "onebit/program/serve/request_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace onebit::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The kind and the message of the error of an action.
std::pair<std::string, std::string> error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ApiError& error) {
    return {std::string(name_of(error.kind())), error.what()};
  }
  return {"none", ""};
}

void expect_error(const std::string& kind, const std::string& words, const std::string& body,
                  const std::function<void(const RequestBody&)>& read) {
  const auto [found, message] = error_of([&] { read(RequestBody(body)); });
  EXPECT_EQ(found, kind) << body << ": " << message;
  EXPECT_THAT(message, HasSubstr(words)) << body;
}

TEST(RequestBody, WhatIsNotAnObjectIsRefused) {
  const auto kind = [](const std::string& body) {
    return error_of([&] { const RequestBody read(body); });
  };
  for (const std::string body :
       {"", " ", "{", "{}}", "{\"a\":}", "nothing", "{'a': 1}", "{\"a\": \"\xFF\"}", "{\"a\": NaN}",
        "{\"a\": 1, \"a\": 2}", "{\"a\": \"\\ud800\"}", "{\"a\": 1e999}"}) {
    EXPECT_EQ(kind(body).first, "Validation") << body;
    EXPECT_EQ(error_reply("/", ApiError(ErrorKind::kSyntax, "")).status, 400);
    try {
      const RequestBody read(body);
    } catch (const ApiError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kSyntax) << body;
    }
  }
  for (const std::string body : {"[]", "3", "\"text\"", "null"}) {
    EXPECT_THAT(kind(body).second, HasSubstr("not a JSON object")) << body;
  }
  EXPECT_EQ(kind("{}").first, "none");
}

TEST(RequestBody, WhatIsNestedDeeplyIsRefused) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  const RequestBody allowed(nested(32));
  expect_error("Validation", "32 levels", nested(33), [](const RequestBody&) {});
  expect_error("Validation", "32 levels", "{\"a\":" + std::string(1'000'000, '['),
               [](const RequestBody&) {});
  // Brackets in texts are no levels.
  const RequestBody text("{\"a\": \"" + std::string(100, '[') + "\\\"[\"}");
  EXPECT_EQ(text.require_text("a").size(), 102u);
}

TEST(RequestBody, ReadsMembers) {
  const RequestBody body(
      R"({"t": "x", "b": true, "w": 3, "f": 0.5, "n": null, "c": "Right", "o": {"x": 1}})");
  EXPECT_EQ(body.text("t", "y"), "x");
  EXPECT_EQ(body.text("n", "y"), "y");
  EXPECT_EQ(body.text("absent", "y"), "y");
  EXPECT_TRUE(body.boolean("b", false));
  EXPECT_TRUE(body.boolean("absent", true));
  EXPECT_EQ(body.whole("w"), 3);
  EXPECT_EQ(body.whole("absent"), std::nullopt);
  EXPECT_EQ(body.choice("c", {"left", "right"}), "right");
  EXPECT_EQ(body.choice("absent", {"left", "right"}), "left");
  EXPECT_EQ(body.object("o").whole("x"), 1);
  EXPECT_EQ(body.object("absent").find("x"), nullptr);
}

TEST(RequestBody, MembersOfAnotherTypeAreRefused) {
  const std::string body = R"({"t": 3, "b": "true", "w": 0.5, "c": "up", "o": [], "big": 1e30})";
  const std::pair<const char*, std::function<void(const RequestBody&)>> cases[] = {
      {"`t` is not a text", [](const RequestBody& read) { read.text("t", ""); }},
      {"`t` is not a text", [](const RequestBody& read) { read.require_text("t"); }},
      {"`x` is missing", [](const RequestBody& read) { read.require_text("x"); }},
      {"`b` is not true or false", [](const RequestBody& read) { read.boolean("b", true); }},
      {"`w` is not a whole number", [](const RequestBody& read) { read.whole("w"); }},
      {"`big` is not a whole number", [](const RequestBody& read) { read.whole("big"); }},
      {"`c` is none of: left, right",
       [](const RequestBody& read) {
         read.choice("c", {"left", "right"});
       }},
      {"`o` is not an object", [](const RequestBody& read) { read.object("o"); }},
  };
  for (const auto& [words, read] : cases) expect_error("Validation", words, body, read);
}

TEST(RequestBody, ReadsInputs) {
  const auto inputs = [](const std::string& value) {
    std::vector<std::string> texts;
    for (const TextInput& input : RequestBody("{\"i\": " + value + "}").inputs("i", 3)) {
      std::string text = input.text;
      for (const int64_t id : input.ids.value_or(std::vector<int64_t>())) {
        text += " " + std::to_string(id);
      }
      texts.push_back(text);
    }
    return texts;
  };
  EXPECT_THAT(inputs("\"a\""), ElementsAre("a"));
  EXPECT_THAT(inputs("[\"a\", \"b\"]"), ElementsAre("a", "b"));
  EXPECT_THAT(inputs("[1, 2, 3, 4, 5]"), ElementsAre(" 1 2 3 4 5"));
  EXPECT_THAT(inputs("[[1, 2], [3]]"), ElementsAre(" 1 2", " 3"));
  EXPECT_THAT(inputs("[\"a\", [3]]"), ElementsAre("a", " 3"));
}

TEST(RequestBody, WrongInputsAreRefused) {
  const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
      {"", {"Validation", "missing"}},
      {"\"i\": null", {"Validation", "missing"}},
      {"\"i\": 3", {"Validation", "not a text"}},
      {"\"i\": {}", {"Validation", "not a text"}},
      {"\"i\": true", {"Validation", "not a text"}},
      {"\"i\": \"\"", {"Empty", "cannot be empty"}},
      {"\"i\": []", {"Empty", "cannot be empty"}},
      {"\"i\": [\"a\", \"\"]", {"Empty", "cannot be empty"}},
      {"\"i\": [[]]", {"Empty", "cannot be empty"}},
      {"\"i\": [\"a\", 3]", {"Validation", "not a text"}},
      {"\"i\": [1, \"a\"]", {"Validation", "list of ids"}},
      {"\"i\": [1.5]", {"Validation", "list of ids"}},
      {"\"i\": [[\"a\"]]", {"Validation", "list of ids"}},
      {"\"i\": [\"a\", \"b\", \"c\", \"d\"]",
       {"Validation", "4 inputs, which is more than the maximum of 3"}},
  };
  for (const auto& [members, error] : cases) {
    expect_error(error.first, error.second, "{" + std::string(members) + "}",
                 [](const RequestBody& body) { body.inputs("i", 3); });
  }
}

TEST(RequestBody, ReadsTexts) {
  EXPECT_THAT(RequestBody(R"({"i": ["a", "b"]})").texts("i", 3), ElementsAre("a", "b"));
  const std::pair<const char*, const char*> cases[] = {{"\"a\"", "Validation"},
                                                       {"[]", "Empty"},
                                                       {"[\"\"]", "Empty"},
                                                       {"[3]", "Validation"},
                                                       {"[[\"a\"]]", "Validation"},
                                                       {"{}", "Validation"},
                                                       {"[\"a\",\"a\",\"a\",\"a\"]", "Validation"}};
  for (const auto& [value, kind] : cases) {
    expect_error(kind, "`i`", "{\"i\": " + std::string(value) + "}",
                 [](const RequestBody& body) { body.texts("i", 3); });
  }
}

TEST(RequestBody, ReadsSequences) {
  const auto sequences = [](const std::string& value) {
    bool is_list = false;
    std::string text;
    for (const SequenceInput& input :
         RequestBody("{\"i\": " + value + "}").sequences("i", 3, is_list)) {
      text += (text.empty() ? "" : " ") + input.first + (input.second ? "+" + *input.second : "");
    }
    return (is_list ? "list: " : "one: ") + text;
  };
  EXPECT_EQ(sequences("\"a\""), "one: a");
  EXPECT_EQ(sequences("[\"a\"]"), "one: a");
  EXPECT_EQ(sequences("[\"a\", \"b\"]"), "one: a+b");
  EXPECT_EQ(sequences("[[\"a\"], [\"b\", \"c\"]]"), "list: a b+c");
  const std::pair<const char*, const char*> cases[] = {
      {"3", "Validation"},
      {"{}", "Validation"},
      {"[]", "Empty"},
      {"\"\"", "Empty"},
      {"[\"a\", \"\"]", "Empty"},
      {"[\"a\", \"b\", \"c\"]", "Validation"},
      {"[\"a\", 3]", "Validation"},
      {"[[]]", "Empty"},
      {"[[\"a\", \"b\", \"c\"]]", "Validation"},
      {"[[\"a\"], [[\"b\"]]]", "Validation"},
      {"[[1], [2]]", "Validation"},
      {"[[\"a\"],[\"a\"],[\"a\"],[\"a\"]]", "Validation"}};
  for (const auto& [value, kind] : cases) {
    expect_error(kind, "`i`", "{\"i\": " + std::string(value) + "}", [](const RequestBody& body) {
      bool is_list = false;
      body.sequences("i", 3, is_list);
    });
  }
}

}  // namespace
}  // namespace onebit::serve
