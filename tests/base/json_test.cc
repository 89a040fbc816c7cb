#include "onebit/ground/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/clock.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string parse_message(std::string_view text) {
  return message_of([&] { parse_json(text, "recipe.json"); });
}

JsonReader reader_of(std::string_view text) {
  return {parse_json(text, "recipe.json"), "recipe.json", ""};
}

TEST(ParseJson, KeepsTheOrderOfKeysAndAllowsComments) {
  const Json json = parse_json("{\"b\": 1, // why\n \"a\": [2, /* two */ 3]}", "x");
  EXPECT_EQ(json.dump(), R"({"b":1,"a":[2,3]})");
}

TEST(JsonText, ReplacesWhatIsNotUtf8) {
  const Json json = {{"name", "b\xff.txt"}, {"k\xe9y", 1}};
  EXPECT_EQ(json_text(json), "{\"name\":\"b\xEF\xBF\xBD.txt\",\"k\xEF\xBF\xBDy\":1}");
  EXPECT_EQ(ascii_json_text(Json("\xc3\xa9\xff")), R"("\u00e9\ufffd")");
  EXPECT_EQ(json_text(Json{{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

TEST(ExactJsonText, RefusesWhatIsNotUtf8AndNamesIt) {
  EXPECT_EQ(exact_json_text(Json{{"a", "\xc3\xa9"}}, "f"), "{\"a\":\"\xc3\xa9\"}");
  const Json json = {{"outer", {{"name", "b\xff"}}}};
  const std::string message = message_of([&] { exact_json_text(json, "recipe.json"); });
  EXPECT_THAT(message, StartsWith("recipe.json: {\"/outer/name\":\"b\xEF\xBF\xBD\"} is not UTF-8"));
  EXPECT_THAT(message_of([&] {
                require_utf8(Json{{"k\xff", 1}}, "here");
              }),
              HasSubstr("is not UTF-8"));
  require_utf8(json_text(json), "here");
}

TEST(IsUtf8, KnowsWholeAndBrokenCharacters) {
  EXPECT_TRUE(is_utf8("") && is_utf8("plain") && is_utf8("\xf0\x9f\x98\x80"));
  EXPECT_FALSE(is_utf8("\xff") || is_utf8("\xc3") || is_utf8("a\xed\xa0\x80"));
}

TEST(ParseJson, MistakesCarryLineAndColumn) {
  EXPECT_THAT(parse_message("{\n  \"a\": 1,\n  \"b\" 2\n}"), StartsWith("recipe.json:3:7: "));
  EXPECT_THAT(parse_message("{\"a\": }"), StartsWith("recipe.json:1:7: "));
  EXPECT_THAT(parse_message(""), StartsWith("recipe.json:1:1: "));
  EXPECT_THAT(parse_message("{} x"), StartsWith("recipe.json:1:4: "));
  EXPECT_THAT(parse_message("{\"a\": [1, 2}"), HasSubstr("not valid JSON"));
}

TEST(ParseJson, BadBytesAndNumbersAreErrorsOfOurs) {
  EXPECT_THAT(parse_message("{\"a\": \"\xff\"}"), StartsWith("recipe.json:1:8: "));
  EXPECT_THAT(parse_message("{\"a\": 1e999}"), StartsWith("recipe.json"));
  EXPECT_THAT(parse_message(std::string_view("{}\n\0 \"", 6)),
              StartsWith("recipe.json:2:1: not valid JSON: a zero byte"));
  EXPECT_THAT(parse_message("{\"a\": 1e999}"), HasSubstr("1e999"));
}

TEST(ParseJson, NestingIsBounded) {
  const auto nested = [](size_t depth) {
    return "{\"a\": \"[[\", /* \" */ \"b\": " + std::string(depth, '[') + std::string(depth, ']') +
           "}";
  };
  EXPECT_EQ(parse_message(nested(499)), "(no error)");
  EXPECT_THAT(parse_message(nested(500)), HasSubstr("more than 500 nested brackets"));
  // Where a key follows, the object that holds the deep value grows and copies it.
  EXPECT_THAT(parse_message("{\"a\": " + nested(200000) + ", \"b\": 1}"),
              HasSubstr("more than 500 nested brackets"));
  EXPECT_THAT(parse_message(nested(200000)), StartsWith("recipe.json:1:"));
  // Invalid JSON is counted first, too, and not read beyond its end.
  for (const std::string broken : {"{\"a", "{\"a\\", "[1]]]]", "[/", "[1, /*", "{\"a\": \"\\"}) {
    EXPECT_THAT(parse_message(broken.substr()), HasSubstr("not valid JSON")) << broken;
  }
}

TEST(ParseJson, AKeyGivenTwiceIsAnErrorAtItsSecondPlace) {
  EXPECT_THAT(parse_message("{\n \"lr\": 1,\n \"lr\": 2}"),
              StartsWith("recipe.json:3:2: the key \"lr\" is given twice"));
  EXPECT_THAT(parse_message(R"({"a": {"x": 1, "\u0078": 2}})"), StartsWith("recipe.json:1:16: "));
  EXPECT_THAT(parse_message(R"([{"a": 1}, {"b": [{"c": 1, "c": 1}]}])"), HasSubstr("\"c\""));
}

TEST(ParseJson, TheSameKeyInTwoObjectsIsFine) {
  const Json json = parse_json(
      R"({"a": {"a": 1, "b": "\"a\": {"}, /* "a": */ "b": [{"a": 1}, {"a": 2}, "a", "a"]})", "x");
  EXPECT_EQ(json["b"].size(), 4u);
}

TEST(ReadJson, NamesTheFile) {
  const TemporaryFolder folder;
  const Path path = folder / "bad.json";
  write_file_atomically(path, "{\n,}");
  EXPECT_THAT(message_of([&] { read_json(path); }), StartsWith(path.string() + ":2:1: "));
  EXPECT_THAT(message_of([&] { read_json(folder / "absent.json"); }), HasSubstr("absent.json"));
}

TEST(JsonReader, ReadsTypedValuesAndFallbacks) {
  JsonReader reader = reader_of(
      R"({"t": "x", "n": 0.5, "i": 7, "whole": 3.0, "b": true, "c": "auto", "null": null,
          "o": {"deep": 1}})");
  EXPECT_EQ(reader.text("t", ""), "x");
  EXPECT_EQ(reader.number("n", 0), 0.5);
  EXPECT_EQ(reader.integer("i", 0), 7);
  EXPECT_EQ(reader.integer("whole", 0), 3);
  EXPECT_TRUE(reader.boolean("b", false));
  EXPECT_EQ(reader.choice("c", "", {"auto", "never"}), "auto");
  EXPECT_EQ(reader.text("absent", "fallback"), "fallback");
  EXPECT_EQ(reader.integer("null", 9), 9);
  EXPECT_FALSE(reader.has("null"));
  EXPECT_EQ(reader.object("o").integer("deep", 0), 1);
  EXPECT_TRUE(reader.raw("absent").is_null());
  reader.finish();
}

TEST(JsonReader, AnotherTypeIsAnErrorThatNamesThePath) {
  JsonReader reader = reader_of(R"({"optimizer": {"params": {"lr": "fast", "steps": 1.5}}})");
  JsonReader params = reader.object("optimizer").object("params");
  EXPECT_EQ(message_of([&] { params.number("lr", 0); }),
            "recipe.json: key `optimizer.params.lr` must be a number, got \"fast\"");
  EXPECT_THAT(message_of([&] { params.integer("steps", 0); }),
              HasSubstr("whole number below 2^63, got 1.5"));
  EXPECT_THAT(message_of([&] { params.text("steps", ""); }), HasSubstr("must be a string"));
  EXPECT_THAT(message_of([&] { params.boolean("lr", true); }), HasSubstr("true or false"));
  EXPECT_THAT(message_of([&] { params.object("lr"); }), HasSubstr("must be an object"));
}

// Objects are built without a search for each key: tokenizer.json has one of 30,522 words.
TEST(ParseJson, TakesTimeInProportionToTheKeys) {
  const auto seconds_of = [](int keys) {
    std::string text = "{\"vocab\": {";
    for (int i = 0; i < keys; ++i) text += fmt::format("{}\"word{}\": {}", i ? "," : "", i, i);
    text += "}}";
    // The processor time of this thread, which other programs do not lengthen.
    const double before = thread_processor_seconds();
    const Json json = parse_json(text, "tokenizer.json");
    EXPECT_EQ(json.at("vocab").size(), static_cast<size_t>(keys));
    return thread_processor_seconds() - before;
  };
  const double few = seconds_of(5000);
  // Forty times the keys: 1,600 times as long if every key searched those before it.
  EXPECT_LT(seconds_of(200000), 400 * few + 0.1);
}

TEST(JsonReader, IntegersBeyond64BitsAreErrors) {
  JsonReader reader = reader_of(R"({"big": 18446744073709551615, "huge": 1e30,
                                    "largest": 9223372036854775807})");
  EXPECT_THAT(message_of([&] { reader.integer("big", 0); }), HasSubstr("`big`"));
  EXPECT_THAT(message_of([&] { reader.integer("huge", 0); }), HasSubstr("`huge`"));
  EXPECT_EQ(reader.integer("largest", 0), INT64_MAX);
}

TEST(JsonReader, AChoiceListsItsWords) {
  JsonReader reader = reader_of(R"({"variance": "live_levle"})");
  const std::string message = message_of([&] {
    reader.choice("variance", "", {"live_level", "frozen"});
  });
  EXPECT_THAT(message, HasSubstr("live_level, frozen"));
  EXPECT_THAT(message, HasSubstr("did you mean \"live_level\"?"));
}

TEST(JsonReader, UnknownKeysAreErrorsWithTheNearestKnown) {
  JsonReader reader = reader_of(R"({"freze_step": 3})");
  reader.integer("freeze_step", 0);
  reader.accept("lr");
  EXPECT_EQ(message_of([&] { reader.finish(); }),
            "recipe.json: key `freze_step` is not known; did you mean \"freeze_step\"?");
  JsonReader other = reader_of(R"({"quite_other": 3})");
  other.accept("lr");
  EXPECT_THAT(message_of([&] { other.finish(); }), HasSubstr("known here: lr"));
}

}  // namespace
}  // namespace onebit
