// Compares with goldens of Hugging Face's `tokenizers`, written by tools/make_tokenizer_folders.py.
#include "onebit/data/tokenizer_files/component_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/text/tokenizer.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/data/tokenizer_files/tokenizer_json.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"

namespace onebit::formats {
namespace {

using testing::HasSubstr;

const Path kFolder = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/pipelines";

Json golden() {
  return read_json(kFolder / "decoded.json");
}

text::Tokenizer tokenizer_of(const std::string& name) {
  if (name == "bert") {
    return {std::make_shared<text::Vocabulary>(
                text::Vocabulary::load(Path(ONEBIT_SOURCE_DIR) / "tests/text/golden/vocab.txt")),
            text::Casing::kUncased};
  }
  const Path file = kFolder / name / "tokenizer.json";
  return {std::make_shared<text::Vocabulary>(
              text::Vocabulary::from_parts(read_tokenizer_with(file).vocabulary, file.string())),
          text::Casing::kCased};
}

TEST(Decoder, DecodesAsTheLibraryDoes) {
  int rows = 0;
  const Json all = golden();
  for (const auto& [name, cases] : all["tokenizers"].items()) {
    const text::Tokenizer tokenizer = tokenizer_of(name);
    for (const Json& row : cases) {
      const auto ids = row["ids"].get<std::vector<int32_t>>();
      EXPECT_EQ(tokenizer.decode(ids, false), row["all"].get<std::string>()) << name;
      EXPECT_EQ(tokenizer.decode(ids, true), row["text"].get<std::string>()) << name;
      ++rows;
    }
  }
  EXPECT_GT(rows, 5 * 150);
}

TEST(Decoder, EachKindDecodesAsTheLibraryDoes) {
  const Json all = golden();
  for (const Json& kind : all["decoders"]) {
    const text::Decoder decoder = read_decoder(kind["decoder"], "t.json");
    for (const Json& one : kind["cases"]) {
      const auto tokens = one["tokens"].get<std::vector<std::string>>();
      EXPECT_EQ(decoder.decode(tokens), one["text"].get<std::string>())
          << json_text(kind["decoder"]) << " " << json_text(one["tokens"]);
    }
  }
}

// Ids do not depend on it: a model with such a tokenizer is read.
TEST(Decoder, AnotherOneRefusesToDecodeByName) {
  const auto error_of = [](const char* text) {
    const text::Decoder decoder = read_decoder(parse_json(text, "t.json"), "t.json");
    return message_of([&] { (void)decoder.decode({"a"}); });
  };
  EXPECT_THAT(error_of(R"({"type": "CTC"})"),
              HasSubstr("key `decoder` is \"CTC\", which onebit's decoder does not have"));
  EXPECT_THAT(error_of(R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "X"}]})"),
              HasSubstr("key `decoder.decoders[1]` is \"X\""));
  EXPECT_THAT(error_of(R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""})"),
              HasSubstr("is not a String"));
  EXPECT_THAT(error_of(R"({"type": "Fuse", "more": 1})"), HasSubstr("more"));
  EXPECT_THAT(error_of(R"({"type": "Strip", "content": "ab"})"), HasSubstr("one character"));
  EXPECT_THAT(error_of(R"(["Fuse"])"), HasSubstr("not a component"));
}

TEST(Decoder, IsWrittenAsItWasRead) {
  for (const char* text :
       {R"({"type": "WordPiece", "prefix": "##", "cleanup": false})", "null",
        R"({"type": "Sequence", "decoders": [{"type": "WordPiece"}, {"type": "Fuse"}]})",
        R"({"type": "CTC", "pad_token": "<pad>"})"}) {
    const Json json = parse_json(text, "t.json");
    EXPECT_EQ(json_text(decoder_json(read_decoder(json, "t.json"))), json_text(json));
  }
  EXPECT_EQ(json_text(decoder_json(text::Decoder())),
            R"({"type":"WordPiece","prefix":"##","cleanup":true})");
}

TEST(Decoder, RefusesIdsThatAreNone) {
  const text::Tokenizer tokenizer = tokenizer_of("bytes");
  const int32_t size = tokenizer.vocabulary().size();
  for (const int32_t id : {-1, size}) {
    EXPECT_THAT(message_of([&] {
                  (void)tokenizer.decode({&id, 1}, true);
                }),
                HasSubstr(fmt::format("id {} is not one of the vocabulary's", id)));
  }
}

}  // namespace
}  // namespace onebit::formats
