#include "onebit/data/tokenizer_files/tokenizer_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "onebit/data/tokenizer_files/tokenizer_json.h"
#include "onebit/ground/base/json.h"
#include "tests/tokenizer_files/tokenizer_files_fixture.h"

namespace onebit::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using text::AddedToken;

// transformers wrote the golden file for the same vocabulary (tools/make_checkpoint_goldens.py).
TEST_F(TokenizerFilesTest, TokenizerJsonIsThatOfTransformers) {
  const Path golden = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/bert";
  const TokenizerFiles files = read_tokenizer(golden);
  ASSERT_TRUE(files.config.has_value());
  for (const TextFile& file : tokenizer_files(files)) {
    if (file.name != "tokenizer.json") continue;
    EXPECT_EQ(file.text, read_file(golden / file.name));
  }
}

TEST_F(TokenizerFilesTest, WhatIsWrittenIsRead) {
  TokenizerFiles files;
  files.vocabulary.tokens = {"the", "<unk>", "</s>", "\"q\\", "<s>", "ü", "<pad>", "<mask>"};
  files.vocabulary.names = {
      .unknown = "<unk>", .sep = "</s>", .pad = "<pad>", .cls = "<s>", .mask = "<mask>"};
  files.vocabulary.added = {
      {.id = 8, .content = "[ENT]", .special = true},
      {.id = 9, .content = "covid19", .single_word = true, .normalized = true}};
  files.config = TokenizerConfigFile{.lower_case = false, .model_max_length = 64};
  const auto complete = text::Vocabulary::from_parts(files.vocabulary, "written");
  EXPECT_EQ(complete.size(), 10);
  for (const TextFile& file : tokenizer_files(files)) write(file.name, file.text);
  EXPECT_EQ(read().vocabulary, complete.parts());
  EXPECT_EQ(read().config, files.config);
  // Each of the two kinds of file says all.
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_EQ(read().vocabulary, complete.parts());
  EXPECT_EQ(read().config, files.config);
  write("tokenizer.json", tokenizer_files(files)[3].text);
  for (const char* name : {"vocab.txt", "added_tokens.json"}) {
    std::filesystem::remove(folder_ / name);
  }
  EXPECT_EQ(read().vocabulary, complete.parts());
}

// transformers keeps added tokens in three places.
TEST_F(TokenizerFilesTest, AddedTokensAreReadFromAllPlaces) {
  write("vocab.txt", kWords);
  write("tokenizer_config.json", kLowerCase);
  EXPECT_TRUE(vocabulary().is_plain());
  write("added_tokens.json", R"({"x1": 7, "[E]": 8})");
  const AddedToken x1{.id = 7, .content = "x1", .normalized = true};
  EXPECT_EQ(read().vocabulary.added[0], x1);
  EXPECT_TRUE(read().vocabulary.added[1].normalized);
  write("special_tokens_map.json", R"({"additional_special_tokens": ["[E]"]})");
  const AddedToken e{.id = 8, .content = "[E]", .special = true};
  EXPECT_THAT(read().vocabulary.added, ElementsAre(x1, e));
  EXPECT_EQ(vocabulary().size(), 9);

  std::filesystem::remove(folder_ / "added_tokens.json");
  write("tokenizer_config.json", R"({"do_lower_case": true, "added_tokens_decoder": {
      "7": {"content": "x1", "lstrip": true, "normalized": true, "special": false},
      "8": {"content": "[E]", "normalized": false, "special": true}}})");
  EXPECT_TRUE(read().vocabulary.added[0].lstrip);
  EXPECT_EQ(read().vocabulary.added[1], e);

  write("tokenizer_config.json", kLowerCase);
  Json json = combined();
  json["added_tokens"].push_back(text::added_token_json(x1));
  json["added_tokens"].push_back(text::added_token_json(e));
  write_json("tokenizer.json", json);
  EXPECT_EQ(vocabulary().added()[6], e);
  // All of them at once, and vocab.txt with the tokens as further lines.
  write("added_tokens.json", R"({"x1": 7, "[E]": 8})");
  write("vocab.txt", std::string(kWords) + "x1\n[E]\n");
  EXPECT_EQ(vocabulary().model_size(), 7);
  EXPECT_EQ(vocabulary().size(), 9);
}

TEST_F(TokenizerFilesTest, AddedTokensThatCannotBeAreNamed) {
  write("vocab.txt", kWords);
  write("added_tokens.json", R"({"x1": 9})");
  EXPECT_THAT(error(), HasSubstr("the added token 'x1' has the id 9; `tokenizers` gives it 7"));
  write("added_tokens.json", R"({"a": 7})");
  EXPECT_THAT(error(), HasSubstr("'a' has the id 7; `tokenizers` gives it 5"));
  write("added_tokens.json", R"({"x1": -1})");
  EXPECT_THAT(error(), HasSubstr("the value of \"x1\" is not a token's id"));
  write("added_tokens.json", R"({"x1": 7})");
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"8": {"content": "x1"}}})");
  EXPECT_THAT(error(), HasSubstr("the id of the added token \"x1\" is 7, in " +
                                 (folder_ / "tokenizer_config.json").string() + " it is 8"));
  std::filesystem::remove(folder_ / "added_tokens.json");
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "x1"}}})");
  EXPECT_THAT(error(), HasSubstr("`added_tokens_decoder.x`: its name must be a token's id"));
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"7": {"content": "x1", "odd": 1}}})");
  EXPECT_THAT(error(), HasSubstr("added_tokens_decoder.7.odd` is not known"));
  write_json("tokenizer_config.json",
             {{"added_tokens_decoder", {{"7", {{"content", std::string(4097, 'x')}}}}}});
  EXPECT_THAT(error(), HasSubstr("added_tokens_decoder.7.content` has 4097 bytes"));
  write("tokenizer_config.json", R"({"additional_special_tokens": ["<e>"]})");
  EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: the special token \"<e>\" has no id"));
  write("tokenizer_config.json", "{}");
  write("special_tokens_map.json", R"({"additional_special_tokens": ["<e>"]})");
  EXPECT_THAT(error(), HasSubstr("special_tokens_map.json: the special token \"<e>\" has no id"));
  std::filesystem::remove(folder_ / "special_tokens_map.json");
  write("vocab.txt", std::string(kWords) + "a\n");
  write("added_tokens.json", R"({"x1": 8})");
  EXPECT_THAT(error(), HasSubstr("repeated or empty lines, and the added token 'x1'"));
}

TEST_F(TokenizerFilesTest, VocabularyOfTokenizerJson) {
  EXPECT_THAT(error(), HasSubstr("neither vocab.txt nor tokenizer.json exists"));
  for (const char* other : {"vocab.json", "sentencepiece.bpe.model", "tokenizer.model"}) {
    write(other, "{}");
    EXPECT_THAT(error(), HasSubstr(fmt::format("has {} and no tokenizer.json", other)));
    std::filesystem::remove(folder_ / other);
  }
  write_json("tokenizer.json", combined());
  EXPECT_EQ(read().vocabulary.tokens.size(), 7u);
  EXPECT_TRUE(read().config->lower_case);
  // transformers writes a repeated token once, with its later id.
  EXPECT_EQ(error_of([](Json& json) { json["model"]["vocab"]["c"] = 9; }), "(no error)");
  EXPECT_THAT(vocabulary().token(8), "");
  EXPECT_EQ(vocabulary().find("c"), 9);
  EXPECT_THAT(error_of([](Json& json) { json["model"]["vocab"]["c"] = 6; }),
              HasSubstr("key `model.vocab.c` is 6, which is the id of \"b\" as well"));
  EXPECT_THAT(error_of([](Json& json) { json["model"]["vocab"]["c"] = "6"; }),
              HasSubstr("key `model.vocab.c` is \"6\"; the token's id was expected"));
  EXPECT_THAT(error_of([](Json& json) { json["model"]["vocab"]["c"] = 4000000000; }),
              HasSubstr("key `model.vocab.c` is 4000000000; the vocabulary has 8 tokens"));
  EXPECT_THAT(error_of([](Json& json) { json["model"]["vocab"] = Json::array(); }),
              HasSubstr("is not an object of tokens and their ids"));
}

TEST_F(TokenizerFilesTest, VocabulariesThatDisagreeAreNamed) {
  write_json("tokenizer.json", combined());
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nb\na\n");
  EXPECT_THAT(error(), HasSubstr("id 5 is \"b\", in"));
  write("vocab.txt", std::string(kWords) + "c\n");
  EXPECT_THAT(error(), HasSubstr("id 7 is \"c\""));
}

TEST_F(TokenizerFilesTest, OtherTokenizersAreNamed) {
  const auto with = [](const char* part, const Json& value) {
    return [=](Json& json) { json[part] = value; };
  };
  const Json bert = combined()["normalizer"];
  EXPECT_EQ(error_of(with("normalizer", {{"type", "Sequence"}, {"normalizers", {bert}}})),
            "(no error)");
  EXPECT_THAT(error_of(with("normalizer", {{"type", "Nmt"}})),
              HasSubstr("tokenizer.json: key `normalizer` is \"Nmt\""));
  EXPECT_THAT(error_of(with("pre_tokenizer", {{"type", "UnicodeScripts"}})),
              HasSubstr("key `pre_tokenizer` is \"UnicodeScripts\""));
  EXPECT_THAT(error_of([](Json& json) { json["model"]["continuing_subword_prefix"] = ""; }),
              HasSubstr("model.continuing_subword_prefix` is empty"));
  EXPECT_THAT(error_of([](Json& json) { json["model"]["unk_token"] = "a"; }),
              HasSubstr("`model.unk_token` is \"a\""));
  EXPECT_THAT(
      error_of([](Json& json) { json["model"]["type"] = "WordLevel"; }),
      HasSubstr("key `model.type` is \"WordLevel\", which onebit's tokenizer does not have; "
                "it has WordPiece, BPE and Unigram"));
  write("tokenizer.json", "{}");
  EXPECT_THAT(error(), HasSubstr("tokenizer.json: key `model` is not an object"));
  EXPECT_THAT(error_of([](Json& json) { json["post_processor"]["pair"].erase(2); }),
              HasSubstr("key `post_processor` is another template"));
  EXPECT_THAT(error_of(with("post_processor", {{"type", "ByteLevel"}})),
              HasSubstr("key `post_processor` is ByteLevel"));
  EXPECT_EQ(
      error_of(with("post_processor",
                    {{"type", "BertProcessing"}, {"cls", {"[CLS]", 2}}, {"sep", {"[SEP]", 3}}})),
      "(no error)");
  // The template has ids of its own, which programs use.
  EXPECT_THAT(
      error_of([](Json& json) { json["post_processor"]["special_tokens"]["[SEP]"]["ids"] = {2}; }),
      HasSubstr("`post_processor` gives \"[SEP]\" the id 2, the vocabulary has 3"));
  EXPECT_THAT(error_of([](Json& json) {
                json["post_processor"]["special_tokens"]["[CLS]"]["ids"] = {2, 2};
              }),
              HasSubstr("gives \"[CLS]\" the id [2,2]"));
  EXPECT_THAT(error_of([](Json& json) { json["post_processor"].erase("special_tokens"); }),
              HasSubstr("gives \"[CLS]\" the id null"));
  EXPECT_THAT(
      error_of(with("post_processor",
                    {{"type", "BertProcessing"}, {"cls", {"[CLS]", 1}}, {"sep", {"[SEP]", 3}}})),
      HasSubstr("gives \"[CLS]\" the id 1, the vocabulary has 2"));
  EXPECT_THAT(
      error_of(with("post_processor",
                    {{"type", "BertProcessing"}, {"cls", {"<s>", 7}}, {"sep", {"[SEP]", 3}}})),
      HasSubstr("the vocabulary has no such token"));
  EXPECT_THAT(error_of([](Json& json) { json["post_processor"]["odd"] = 1; }),
              HasSubstr("key `post_processor.odd` is not known"));
  EXPECT_THAT(error_of(with("truncation", {{"direction", "Left"}, {"max_length", 8}})),
              HasSubstr("truncation.direction"));
  EXPECT_EQ(error_of(with("truncation", {{"direction", "Right"}, {"max_length", 8}})),
            "(no error)");
  EXPECT_THAT(error_of(with("odd", 3)), HasSubstr("key `odd` is not known"));
  EXPECT_THAT(error_of(with("version", "2.0")),
              HasSubstr("key `version` is \"2.0\"; it must be \"1.0\""));
}

// MPNet has WordPiece, other special tokens, and two separators between the texts of a pair.
TEST_F(TokenizerFilesTest, Mpnet) {
  Json json = combined();
  const char* names[] = {"<s>", "<pad>", "</s>", "[UNK]", "<mask>"};
  json["model"]["vocab"] = Json::object();
  for (int id = 0; id < 5; ++id) {
    json["added_tokens"][static_cast<size_t>(id)]["content"] = names[id];
    json["model"]["vocab"][names[id]] = id;
  }
  json["model"]["vocab"]["a"] = 5;
  json["model"]["vocab"]["b"] = 6;
  json["post_processor"] = {{"type", "RobertaProcessing"},
                            {"sep", {"</s>", 2}},
                            {"cls", {"<s>", 0}},
                            {"trim_offsets", true},
                            {"add_prefix_space", false}};
  write_json("tokenizer.json", json);
  write_json("tokenizer_config.json", {{"tokenizer_class", "MPNetTokenizer"},
                                       {"do_lower_case", true},
                                       {"cls_token", "<s>"},
                                       {"pad_token", "<pad>"},
                                       {"sep_token", "</s>"},
                                       {"unk_token", "[UNK]"},
                                       {"mask_token", "<mask>"}});
  const text::Vocabulary words = vocabulary();
  EXPECT_EQ(words.cls_id(), 0);
  EXPECT_EQ(words.pad_id(), 1);
  EXPECT_EQ(words.mask_id(), 4);
  EXPECT_EQ(words.pair_template(), (text::PairTemplate{.separators = 2, .second_segment = 0}));
  TemporaryFolder written;
  for (const TextFile& file : tokenizer_files({words.parts(), read().config})) {
    std::ofstream(written / file.name, std::ios::binary) << file.text;
  }
  EXPECT_EQ(read_json(written / "tokenizer_config.json").at("tokenizer_class"), "MPNetTokenizer");
  EXPECT_EQ(read_tokenizer(written.path()).vocabulary, words.parts());
}

TEST_F(TokenizerFilesTest, Config) {
  write("vocab.txt", kWords);
  EXPECT_FALSE(read().config.has_value());
  write("tokenizer_config.json", R"({"model_max_length": 512})");
  EXPECT_FALSE(read().config.has_value());
  write("tokenizer_config.json", R"({"do_lower_case": false, "model_max_length": 1e30})");
  EXPECT_FALSE(read().config->lower_case);
  EXPECT_EQ(read().config->model_max_length, 1'000'000'000);
  write("tokenizer_config.json", R"({"do_lower_case": true, "mask_token": "a"})");
  EXPECT_EQ(vocabulary().mask_id(), 5);
  EXPECT_FALSE(vocabulary().is_plain());
  write("special_tokens_map.json", R"({"mask_token": {"content": "b", "lstrip": false}})");
  EXPECT_THAT(error(), HasSubstr("`mask_token` is \"b\", tokenizer_config.json has \"a\""));
  std::filesystem::remove(folder_ / "special_tokens_map.json");
  for (const char* member : {R"("never_split": ["a"])", R"("do_basic_tokenize": false)",
                             R"("truncation_side": "left")", R"("split_special_tokens": true)",
                             R"("auto_map": {"AutoTokenizer": ["x"]})", R"("odd_member": 1)"}) {
    write("tokenizer_config.json", fmt::format("{{{}}}", member));
    const std::string name = std::string(member).substr(1, std::string(member).find('"', 1) - 1);
    EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: key `" + name)) << member;
  }
  write("tokenizer_config.json", kLowerCase);
  EXPECT_THAT(error_of([](Json& json) { json["normalizer"]["lowercase"] = false; }),
              HasSubstr("has do_lower_case true, tokenizer.json has lowercase false"));
}

// Rules other than BERT's, unless the folder says that the class with BERT's rules is meant.
TEST_F(TokenizerFilesTest, WordPieceOfOtherRules) {
  const auto changes = std::vector<std::function<void(Json&)>>{
      [](Json& json) {
        json["normalizer"] = {{"type", "Sequence"},
                              {"normalizers", {{{"type", "NFKC"}}, {{"type", "Lowercase"}}}}};
      },
      [](Json& json) { json["normalizer"] = nullptr; },
      [](Json& json) { json["normalizer"]["clean_text"] = false; },
      [](Json& json) {
        json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
      },
      [](Json& json) { json["model"]["continuing_subword_prefix"] = "@@"; },
      [](Json& json) { json["model"]["max_input_chars_per_word"] = 200; }};
  for (const auto& change : changes) {
    write("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
    EXPECT_EQ(error_of(change), "(no error)");
    EXPECT_TRUE(vocabulary().pipeline() != nullptr);
    for (const char* name : {"BertTokenizer", "MPNetTokenizerFast"}) {
      write("tokenizer_config.json", fmt::format(R"({{"tokenizer_class": "{}"}})", name));
      EXPECT_THAT(error(), HasSubstr(fmt::format("its rules are not BERT's WordPiece, and key "
                                                 "`tokenizer_class` of tokenizer_config.json is "
                                                 "\"{}\"",
                                                 name)));
    }
  }
}

// What published folders have beside the rules: arguments of calls, ids that the tokens have.
TEST_F(TokenizerFilesTest, MembersThatChangeNothingAreRead) {
  write("vocab.txt", kWords);
  for (const char* member :
       {R"("lowercase": true)", R"("do_lower_case": false, "lowercase": false)",
        R"("never_split": ["[UNK]", "[SEP]", "[MASK]"])",
        R"("never_split": ["<m>"], "mask_token": "<m>")", R"("trust_remote_code": true)",
        R"("_from_auto": true)", R"("cache_dir": null)", R"("return_tensors": "pt")",
        R"("mask_token_id": 4)", R"("add_bos_token": false)", R"("do_subword_tokenize": true)",
        R"("max_input_chars_per_word": 100)"}) {
    write("tokenizer_config.json", fmt::format("{{{}}}", member));
    EXPECT_EQ(message_of([&] { read(); }), "(no error)") << member;
  }
  for (const char* member :
       {R"("lowercase": false)", R"("do_lower_case": false, "lowercase": true)",
        R"("never_split": ["[UNK]", "a"])", R"("never_split": "[UNK]")", R"("never_split": [3])",
        R"("add_eos_token": true)", R"("do_word_tokenize": false)",
        R"("max_input_chars_per_word": 200)"}) {
    write("tokenizer_config.json", fmt::format("{{{}}}", member));
    EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: key `")) << member;
  }
  write("tokenizer_config.json", R"({"zzz": 1})");
  EXPECT_THAT(error(), HasSubstr("key `zzz` is not known"));
  EXPECT_THAT(error(), HasSubstr("remove it if it changes no token"));
}

// A token in two lines, and an empty one: every line keeps its id.
TEST_F(TokenizerFilesTest, RepeatedLinesAreWrittenBack) {
  const std::string lines = std::string(kWords) + "a\n\nc\n";
  write("vocab.txt", lines);
  write("tokenizer_config.json", kLowerCase);
  const TokenizerFiles files = read();
  EXPECT_EQ(vocabulary().find("a"), 7);
  EXPECT_EQ(vocabulary().find("c"), 9);
  for (const TextFile& file : tokenizer_files(files)) {
    if (file.name == "vocab.txt") {
      EXPECT_EQ(file.text, lines);
    }
    write(file.name, file.text);
  }
  EXPECT_EQ(read().vocabulary.tokens, files.vocabulary.tokens);
}

TEST_F(TokenizerFilesTest, SettingsThatOnebitDoesNotFollowAreRefused) {
  TokenizerConfigFile config;
  EXPECT_EQ(casing_of(config, "bert"), text::Casing::kUncased);
  config.strip_accents = true;  // what lower-casing does anyway
  EXPECT_EQ(casing_of(config, "bert"), text::Casing::kUncased);
  config.strip_accents = false;
  EXPECT_EQ(casing_of(config, "bert"), text::Casing::kLowerCased);
  config.lower_case = false;
  EXPECT_EQ(casing_of(config, "bert"), text::Casing::kCased);
  config.strip_accents = true;
  const std::string accents = message_of([&] { casing_of(config, "bert"); });
  EXPECT_EQ(accents.find("bert: its tokenizer strips accents without lower-casing"), 0u) << accents;
  config.strip_accents.reset();
  config.tokenize_chinese_chars = false;
  EXPECT_NE(message_of([&] { casing_of(config, "bert"); }).find("tokenize_chinese_chars"),
            std::string::npos);
}

}  // namespace
}  // namespace onebit::formats
