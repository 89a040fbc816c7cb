#include "onebit/apps/tag/json_reader.h"
#include "onebit/ground/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/text_files.h"

namespace onebit::tag {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Tags = std::vector<std::string>;

struct Read {
  std::vector<Sentence> all;
  int64_t widened = 0;
};

Read read(const std::string& text, JsonReader::Options options = {}) {
  const TextFiles files;
  JsonReader reader(files.write("f.jsonl", text), std::move(options));
  Read result;
  for (Sentence one; reader.next(one);) result.all.push_back(one);
  result.widened = reader.widened();
  return result;
}

std::string error_of(const std::string& text, const JsonReader::Options& options = {}) {
  return message_of([&] { read(text, options); });
}

std::vector<std::string> words_of(const Sentence& sentence) {
  std::vector<std::string> words;
  for (size_t i = 0; i < sentence.words.size(); ++i) words.emplace_back(sentence.word(i));
  return words;
}

TEST(JsonReader, WordsAndTags) {
  const Read found = read(
      "{\"tokens\": [\"In\", \"New York\"], \"tags\": [\"O\", \"B-LOC\"]}\n\n"
      "{\"tags\": [], \"tokens\": [], \"id\": 3}\n");
  ASSERT_EQ(found.all.size(), 2u);
  EXPECT_THAT(words_of(found.all[0]), ElementsAre("In", "New York"));
  EXPECT_THAT(found.all[0].tags, ElementsAre("O", "B-LOC"));
  EXPECT_TRUE(found.all[1].words.empty());
  EXPECT_EQ(found.all[1].line, 3u);
  // The keys that others use, and tags as numbers.
  EXPECT_THAT(read("{\"words\": [\"a\"], \"ner_tags\": [3]}").all[0].tags, ElementsAre("3"));
  EXPECT_THAT(read("{\"w\": [\"a\"], \"t\": [\"X\"]}", {.tokens = "w", .tags = "t"}).all[0].tags,
              ElementsAre("X"));
  EXPECT_THAT(read("{\"tokens\": [\"a\"]}", {.with_tags = false}).all[0].tags, IsEmpty());
}

TEST(JsonReader, EntitiesByTheirPlaces) {
  // é is one character and two bytes.
  const Read found = read(
      "{\"text\": \"Hélène lives in New York.\", \"entities\": ["
      "{\"start\": 16, \"end\": 24, \"label\": \"LOC\"}, [0, 6, \"PER\"]]}");
  EXPECT_THAT(words_of(found.all[0]), ElementsAre("Hélène", "lives", "in", "New", "York", "."));
  EXPECT_THAT(found.all[0].tags, ElementsAre("B-PER", "O", "O", "B-LOC", "I-LOC", "O"));
  EXPECT_EQ(found.widened, 0);
  EXPECT_THAT(
      read("{\"text\": \"a b c\", \"entities\": [[0, 5, \"X\"]]}", {.scheme = Scheme::kIobes})
          .all[0]
          .tags,
      ElementsAre("B-X", "I-X", "E-X"));
  EXPECT_THAT(read("{\"t\": \"a\", \"spans\": []}", {.text = "t", .entities = "spans"}).all[0].tags,
              ElementsAre("O"));
  EXPECT_THAT(read("{\"text\": \" \", \"entities\": []}").all[0].words, IsEmpty());
}

// Each word is tokenized alone, so a token that was split would not be found.
TEST(JsonReader, AnAddedTokenIsAWord) {
  const std::vector<text::AddedToken> tokens = {{.id = 6, .content = "[E9]", .special = true},
                                                {.id = 7, .content = "É_1", .normalized = true}};
  const auto finder = std::make_shared<const text::AddedTokenFinder>(
      tokens, text::Characters::get(text::Casing::kUncased));
  const std::string line = "{\"text\": \"a[E9] é_1é-b\", \"entities\": []}\n";
  EXPECT_THAT(words_of(read(line, {.added_tokens = finder}).all[0]),
              ElementsAre("a", "[E9]", "é_1", "é", "-", "b"));
  EXPECT_THAT(words_of(read(line).all[0]),
              ElementsAre("a", "[", "E9", "]", "é", "_", "1é", "-", "b"));
}

TEST(JsonReader, APartOfAWordIsGivenAllOfIt) {
  const Read found = read(
      "{\"text\": \"the Berliners of Bonn\", \"entities\": [[4, 10, \"LOC\"], [16, 21, \"LOC\"]]}");
  EXPECT_THAT(found.all[0].tags, ElementsAre("O", "B-LOC", "O", "B-LOC"));
  EXPECT_EQ(found.widened, 1);  // white space around an entity is no part of a word
}

TEST(JsonReader, WhatIsWrongIsNamed) {
  EXPECT_THAT(error_of("[1]"), HasSubstr("f.jsonl:1: is not a JSON object"));
  EXPECT_THAT(error_of("{\"a\": 1, \"b\": 2}"), HasSubstr("it has a, b"));
  EXPECT_THAT(error_of("{\"tokens\": [\"a\"]}"), HasSubstr("has no list of tags"));
  EXPECT_THAT(error_of("{\"tokens\": [\"a\"], \"tags\": [\"X\", \"Y\"]}"),
              HasSubstr("f.jsonl:1: has 1 words (`tokens`) and 2 tags (`tags`)"));
  EXPECT_THAT(error_of("{\"tokens\": [\"a\", null], \"tags\": [\"X\", \"Y\"]}"),
              HasSubstr("member 2 of `tokens` is null"));
  EXPECT_THAT(error_of("{\"tokens\": [\"a\\tb\"], \"tags\": [\"X\"]}"), HasSubstr("a tab"));
  EXPECT_THAT(error_of("{\"tokens\": [\"\"], \"tags\": [\"X\"]}"), HasSubstr("is empty"));
  EXPECT_THAT(error_of("{\"tokens\": \"a\", \"tags\": [\"X\"]}"),
              HasSubstr("`tokens` is not a list"));
  const auto spans = [](const std::string& list) {
    return error_of("{\"text\": \"New York is\", \"entities\": " + list + "}");
  };
  EXPECT_THAT(spans("[[0, 12, \"X\"]]"),
              HasSubstr("is not inside the text, which has 11 characters"));
  EXPECT_THAT(spans("[[3, 3, \"X\"]]"), HasSubstr("is empty"));
  EXPECT_THAT(spans("[[-1, 3, \"X\"]]"), HasSubstr("is not inside the text"));
  EXPECT_THAT(spans("[[3, 4, \"X\"]]"), HasSubstr("contains no words"));
  EXPECT_THAT(spans("[{\"start\": 0, \"end\": 3}]"), HasSubstr("\"label\""));
  EXPECT_THAT(spans("[[0, 8, \"X\"], [4, 11, \"Y\"]]"),
              HasSubstr("the entities X and Y share the word \"York\""));
  EXPECT_THAT(
      error_of("{\"text\": \"トヨタソニー\", \"entities\": [[0, 3, \"X\"], [3, 6, \"Y\"]]}"),
      HasSubstr("in a script without spaces, give words and tags instead of the text"));
  EXPECT_THAT(error_of("{\"text\": \"a\"}"),
              HasSubstr("has a text and no `entities`; it has text; name the list of entities"));
  EXPECT_THAT(error_of("{\"text\": \"a\", \"label\": []}", {.entities = "spans"}),
              HasSubstr("has a text and no `spans`; it has text, label"));
  EXPECT_THAT(error_of("{\"text\": \"a\", \"entities\": []}\n{\"body\": []}"),
              HasSubstr("f.jsonl:2: has no key `text`"));
}

TEST(JsonReader, WholeNumbersAreTagsByTheirPlaceInTheNames) {
  const JsonReader::Options options = {.tag_names = {"O", "B-PER", "I-PER"}};
  const std::string text = "{\"tokens\": [\"a\", \"b\", \"c\"], \"ner_tags\": [1, 2, 0]}\n";
  EXPECT_THAT(read(text, options).all[0].tags, ElementsAre("B-PER", "I-PER", "O"));
  EXPECT_THAT(error_of("{\"tokens\": [\"a\"], \"ner_tags\": [3]}\n", options),
              HasSubstr("f.jsonl:1: the tag 3 has no name: there are 3, from 0 (O, B-PER, I-PER)"));
  EXPECT_THAT(error_of("{\"tokens\": [\"a\"], \"ner_tags\": [-1]}\n", options),
              HasSubstr("the tag -1"));
  EXPECT_THAT(read("{\"tokens\": [\"a\"], \"tags\": [\"1\"]}\n", options).all[0].tags,
              ElementsAre("1"))
      << "a string is the tag itself";
  for (const Tags& names : {Tags{"1", "0"}, Tags{"LABEL_0", "LABEL_1"}}) {
    EXPECT_THAT(read(text, {.tag_names = names}).all[0].tags, ElementsAre("1", "2", "0"));
  }
}

TEST(JsonReader, LaterKeysAreNeverLost) {
  EXPECT_THAT(error_of("{\"tokens\": [\"a\"], \"ner_tags\": [\"O\"]}\n"
                       "{\"tokens\": [\"a\"], \"ner_tags\": [\"O\"], \"tags\": [\"X\"]}\n"),
              HasSubstr("f.jsonl:2: has the key `tags`, which the first record"));
  EXPECT_THAT(error_of("{\"text\": \"a\", \"entities\": []}\n"
                       "{\"text\": \"a\", \"entities\": [], \"tokens\": [\"b\"]}\n"),
              HasSubstr("`tokens`"));
  EXPECT_EQ(read("{\"text\": \"a\", \"entities\": []}\n"
                 "{\"text\": \"a\", \"entities\": [], \"tokens\": null}\n")
                .all.size(),
            2u);
}

TEST(JsonReader, OneOfTwoListsMustBeNamed) {
  EXPECT_THAT(error_of("{\"tokens\": [\"a\"], \"ner_tags\": [\"O\"], \"tags\": [\"X\"]}\n"),
              HasSubstr("f.jsonl:1: which list is meant, `tags` or `ner_tags`? "));
  EXPECT_THAT(error_of("{\"tokens\": [\"a\"], \"words\": [\"b\"], \"tags\": [\"X\"]}\n"),
              HasSubstr("which list is meant, `tokens` or `words`? "));
  EXPECT_EQ(read("{\"tokens\": [\"a\"], \"words\": 1, \"tags\": [\"X\"], \"labels\": \"sport\"}\n")
                .all.size(),
            1u)
      << "one list";
  EXPECT_EQ(read("{\"tokens\": [\"a\"], \"ner_tags\": [\"O\"], \"tags\": [\"X\"]}\n",
                 {.tags = "ner_tags"})
                .all[0]
                .tags,
            Tags({"O"}));
}

TEST(JsonReader, BadRecordsAreLeftOutWhereTheOptionIsGiven) {
  const std::string text =
      "nonsense\n{\"tokens\": [\"a\"], \"tags\": [\"O\"], \"x\": NaN}\n{\"tokens\": [\"b\"], "
      "\"tags\": []}\n"
      "{\"tokens\": null, \"tags\": []}\n{\"tokens\": [\"c\"], \"tags\": [\"X\"]}\n";
  EXPECT_EQ(read(text, {.left_out = corpus::LeftOut::kBad}).all.size(), 2u);
  EXPECT_THAT(error_of(text, {.left_out = corpus::LeftOut::kMissing}),
              HasSubstr("--skip-bad-records"));
}

// Prodigy's records have the places of the words beside the text.
TEST(JsonReader, TokensThatAreObjectsAreNoWords) {
  const char* record =
      "{\"text\": \"EU ran\", \"spans\": [{\"start\": 0, \"end\": 2, \"label\": \"ORG\"}], "
      "\"tokens\": [{\"text\": \"EU\", \"start\": 0, \"end\": 2, \"id\": 0}]}";
  EXPECT_THAT(read(record).all[0].tags, ElementsAre("B-ORG", "O"));
  EXPECT_THAT(read("{\"text\": \"EU ran\", \"found\": [[0, 2, \"ORG\"]], \"tokens\": [\"EU\"]}",
                   {.entities = "found"})
                  .all[0]
                  .tags,
              ElementsAre("B-ORG", "O"))
      << "the user names the list of entities";
}

TEST(JsonReader, EntitiesMayHaveOffsets) {
  EXPECT_THAT(read("{\"text\": \"In Rome\", \"entities\": [{\"id\": 1, \"start_offset\": 3, "
                   "\"end_offset\": 7, \"label\": \"LOC\"}]}")
                  .all[0]
                  .tags,
              ElementsAre("O", "B-LOC"));
}

TEST(JsonReader, OtherProgramsNamesOfTheEntities) {
  for (const char* key : {"label", "labels", "spans"}) {
    const std::string line =
        fmt::format("{{\"id\": 1, \"text\": \"In Rome\", \"{}\": [[3, 7, \"LOC\"]]}}", key);
    EXPECT_THAT(read(line).all[0].tags, ElementsAre("O", "B-LOC")) << key;
    EXPECT_THAT(error_of(line, {.entities = "found"}), HasSubstr("no `found`")) << key;
  }
}

}  // namespace
}  // namespace onebit::tag
