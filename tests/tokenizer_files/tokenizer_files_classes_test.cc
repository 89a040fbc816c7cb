// What the classes of transformers say of the rules in tokenizer.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "onebit/data/text/tokenizer.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "tests/tokenizer_files/tokenizer_files_fixture.h"

namespace onebit::formats {
namespace {

using testing::HasSubstr;
using text::AddedToken;

// transformers' classes for any tokenizer take all rules from tokenizer.json.
TEST_F(TokenizerFilesTest, ClassesOfOtherModels) {
  for (const char* name : {"PreTrainedTokenizerFast", "TokenizersBackend", "DistilBertTokenizer",
                           "ElectraTokenizerFast", "BertTokenizerFast"}) {
    write_json("tokenizer.json", combined());
    write_json("tokenizer_config.json", {{"tokenizer_class", name}, {"model_max_length", 64}});
    EXPECT_EQ(error(), "(no error)") << name;
    EXPECT_EQ(read().config->model_max_length, 64);
  }
  write("tokenizer_config.json", R"({"tokenizer_class": "TokenizersBackend"})");
  EXPECT_THAT(error_of([](Json& json) { json["post_processor"] = nullptr; }),
              HasSubstr("key `post_processor` is none"));
  std::filesystem::remove(folder_ / "tokenizer.json");
  write("vocab.txt", kWords);
  EXPECT_THAT(error(), HasSubstr("takes its rules from tokenizer.json"));
  write("tokenizer_config.json", R"({"tokenizer_class": "WhisperTokenizer"})");
  EXPECT_THAT(error(), HasSubstr("`tokenizer_class` is \"WhisperTokenizer\""));
}

// transformers gives a model no token_type_ids where `model_input_names` lacks them: by the file,
// else by the class.
TEST_F(TokenizerFilesTest, ModelInputNamesSayWhetherThereAreSegments) {
  write_json("tokenizer.json", combined());
  const auto second_segment = [&](const char* name, const Json& names) {
    write_json("tokenizer_config.json", {{"tokenizer_class", name}, {"model_input_names", names}});
    const text::Vocabulary read_words = vocabulary();
    // What is written says the same.
    TemporaryFolder written;
    for (const TextFile& file : tokenizer_files(read())) {
      std::ofstream(written / file.name, std::ios::binary) << file.text;
    }
    EXPECT_EQ(read_tokenizer(written.path()).vocabulary, read().vocabulary) << name;
    EXPECT_EQ(read_words.parts().has_segments, read_words.has_segments());
    return read_words.second_segment();
  };
  const Json with = {"input_ids", "token_type_ids", "attention_mask"};
  const Json without = {"input_ids", "attention_mask"};
  for (const char* name : {"BertTokenizer", "ElectraTokenizerFast", "DPRContextEncoderTokenizer"}) {
    EXPECT_EQ(second_segment(name, nullptr), 1) << name;
    EXPECT_EQ(second_segment(name, without), 0) << name;
  }
  for (const char* name : {"PreTrainedTokenizerFast", "TokenizersBackend", "DistilBertTokenizer",
                           "DPRReaderTokenizerFast"}) {
    EXPECT_EQ(second_segment(name, nullptr), 0) << name;
    EXPECT_EQ(second_segment(name, with), 1) << name;
  }
  write("tokenizer_config.json", R"({"model_input_names": "input_ids"})");
  EXPECT_THAT(error(), HasSubstr("key `model_input_names` is \"input_ids\"; it must be a list"));
}

// transformers makes the rules of these classes anew, and none of them is WordPiece.
TEST_F(TokenizerFilesTest, AClassOfAnotherModelIsRefused) {
  write_json("tokenizer.json", combined());
  for (const char* name : {"RobertaTokenizer", "XLMRobertaTokenizerFast", "AlbertTokenizer"}) {
    write_json("tokenizer_config.json", {{"tokenizer_class", name}});
    EXPECT_THAT(error(), HasSubstr("its model is WordPiece, and key `tokenizer_class`")) << name;
  }
}

// transformers makes the template of these classes anew, whatever tokenizer.json has (found with
// transformers 5.24). Other classes have the file's.
TEST_F(TokenizerFilesTest, TheClassMayHaveATemplateOfItsOwn) {
  using text::PairTemplate;
  const auto found = [&](const char* name, const PairTemplate& in_file) {
    Json json = combined();
    Json& pair = json["post_processor"]["pair"];
    for (size_t i = pair.size() - 2; i < pair.size(); ++i) {
      for (auto& item : pair[i].items()) item.value()["type_id"] = in_file.second_segment;
    }
    const Json separator = pair[2];
    if (in_file.separators == 2) pair.insert(pair.begin() + 3, separator);
    write_json("tokenizer.json", json);
    write_json("tokenizer_config.json", {{"tokenizer_class", name}});
    TemporaryFolder written;
    for (const TextFile& file : tokenizer_files(read())) {
      std::ofstream(written / file.name, std::ios::binary) << file.text;
    }
    EXPECT_EQ(read_tokenizer(written.path()).vocabulary, read().vocabulary) << name;
    return vocabulary().pair_template();
  };
  for (const PairTemplate& in_file : {PairTemplate{1, 1}, {1, 0}, {2, 0}, {2, 1}}) {
    for (const char* name : {"BertTokenizer", "DistilBertTokenizerFast", "ElectraTokenizer"}) {
      EXPECT_EQ(found(name, in_file), PairTemplate()) << name;
    }
    EXPECT_EQ(found("MPNetTokenizer", in_file), (PairTemplate{2, 0}));
    EXPECT_EQ(found("TokenizersBackend", in_file), in_file);
  }
  Json json = combined();
  json["post_processor"] = nullptr;
  write_json("tokenizer.json", json);
  write_json("tokenizer_config.json", {{"tokenizer_class", "MPNetTokenizer"}});
  EXPECT_EQ(vocabulary().pair_template(), (PairTemplate{2, 0}));
  write_json("tokenizer_config.json", {{"tokenizer_class", "PreTrainedTokenizerFast"}});
  EXPECT_THAT(error(), HasSubstr("key `post_processor` is none"));
  write_json("tokenizer_config.json", {{"tokenizer_class", "T5Tokenizer"}});
  EXPECT_THAT(error(), HasSubstr("puts </s> behind a text and nothing before it"));
}

// Byte pairs with a class that has two separators, and one that also has tokens of fixed names.
TEST_F(TokenizerFilesTest, ClassesOfBytePairsHaveTemplatesToo) {
  Json json = combined();
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = {{"type", "Whitespace"}};
  json["model"] = {{"type", "BPE"},
                   {"vocab", json["model"]["vocab"]},
                   {"merges", Json::array()},
                   {"unk_token", "[UNK]"}};
  write_json("tokenizer.json", json);
  write_json("tokenizer_config.json", {{"tokenizer_class", "RobertaTokenizer"}});
  EXPECT_EQ(vocabulary().pair_template(), (text::PairTemplate{2, 0}));
  write_json("tokenizer_config.json", {{"tokenizer_class", "GPT2Tokenizer"}});
  EXPECT_EQ(vocabulary().pair_template(), text::PairTemplate());
  write_json("tokenizer_config.json",
             {{"tokenizer_class", "XLMRobertaTokenizer"}, {"sep_token", "[SEP]"}});
  EXPECT_THAT(error(), HasSubstr("`sep_token` is \"[SEP]\", and the class XLMRobertaTokenizer"));
}

// As AutoTokenizer of transformers 5.24 chooses it. Copies of the files name the class.
TEST_F(TokenizerFilesTest, AModelImpliesTheClassThatNoFileNames) {
  const auto written = [&](const Json& model) {
    write_json("config.json", model);
    for (const TextFile& file : tokenizer_files(read())) {
      if (file.name == kTokenizerConfigJson) {
        return parse_json(file.text, file.name).at("tokenizer_class").get<std::string>();
      }
    }
    return std::string();
  };
  write_json("config.json", {{"model_type", "bert"}});
  const std::string cased = error_of([](Json& json) { json["normalizer"]["lowercase"] = false; });
  EXPECT_THAT(cased,
              HasSubstr("tokenizer_config.json, which does not exist: has no do_lower_case"));
  EXPECT_THAT(cased, HasSubstr("write \"do_lower_case\": false into tokenizer_config.json"));
  write_json("tokenizer_config.json", {{"do_lower_case", false}});
  EXPECT_EQ(error(), "(no error)");
  std::filesystem::remove(folder_ / "tokenizer_config.json");

  Json json = combined();
  json["normalizer"] = {{"type", "NFC"}};
  json["pre_tokenizer"] = {{"type", "Whitespace"}};
  json["model"] = {{"type", "BPE"},
                   {"vocab", json["model"]["vocab"]},
                   {"merges", Json::array()},
                   {"unk_token", "[UNK]"}};
  write_json("tokenizer.json", json);
  EXPECT_EQ(written({{"model_type", "roberta"}}), "RobertaTokenizer");
  EXPECT_EQ(vocabulary().pair_template(), (text::PairTemplate{2, 0}));
  EXPECT_EQ(written({{"model_type", "bert"}, {"tokenizer_class", "GPT2TokenizerFast"}}),
            "GPT2TokenizerFast");
  // A model that is none of transformers', and one whose class has no such rules.
  EXPECT_EQ(written({{"model_type", "neobert"}}), "PreTrainedTokenizerFast");
  EXPECT_EQ(written({{"model_type", "xlm-roberta"}}), "PreTrainedTokenizerFast");
  EXPECT_EQ(written({{"model_type", "bert"}}), "PreTrainedTokenizerFast");
  write_json("tokenizer_config.json", {{"model_max_length", 512}});
  EXPECT_EQ(written({{"model_type", "modernbert"}}), "TokenizersBackend");
  EXPECT_EQ(written({{"model_type", "roberta"}}), "RobertaTokenizer");
  EXPECT_EQ(read().config->model_max_length, 512);
}

// `tokenizers` looks for no other tokens than a tokenizer.json's added ones in the text.
// transformers looks for those that tokenizer_config.json names, too.
TEST_F(TokenizerFilesTest, AFileAloneSaysWhatIsLookedForInTheText) {
  Json json = combined();
  json["pre_tokenizer"] = {{"type", "Whitespace"}};
  json["model"]["vocab"] = {{"[PAD]", 0},  {"[UNK]", 1}, {"[CLS]", 2}, {"[SEP]", 3},
                            {"[MASK]", 4}, {"a", 5},     {"the", 6},   {"##the", 7}};
  json["model"]["unk_token"] = "the";
  write_json("tokenizer.json", json);
  const auto ids = [&](const TokenizerFiles& files) {
    const auto words =
        std::make_shared<text::Vocabulary>(text::Vocabulary::from_parts(files.vocabulary, "test"));
    text::Tokenizer tokenizer(words, text::Casing::kUncased);
    std::vector<int32_t> found;
    tokenizer.encode("athe the x", found);
    EXPECT_EQ(text::Vocabulary::from_parts(words->parts(), "test").added(), words->added());
    return found;
  };
  EXPECT_THAT(ids(read_tokenizer_alone(folder_ / "tokenizer.json")),
              testing::ElementsAre(5, 7, 6, 6));
  write_json("tokenizer_config.json",
             {{"tokenizer_class", "TokenizersBackend"}, {"unk_token", "the"}});
  EXPECT_THAT(ids(read()), testing::ElementsAre(5, 6, 6, 6));
}

// transformers' BERT classes take them from tokenizer_config.json, other programs from
// tokenizer.json.
TEST_F(TokenizerFilesTest, AccentsAreTheSameInBothFiles) {
  const auto with = [](const Json& value) {
    return [=](Json& json) { json["normalizer"]["strip_accents"] = value; };
  };
  write("tokenizer_config.json", kLowerCase);
  EXPECT_THAT(error_of(with(false)), HasSubstr("has no strip_accents, so that accents are stripped "
                                               "in transformers, and tokenizer.json has"));
  EXPECT_EQ(error_of(with(true)), "(no error)");
  EXPECT_EQ(error_of(with(nullptr)), "(no error)");
  write("tokenizer_config.json", R"({"do_lower_case": true, "strip_accents": false})");
  EXPECT_EQ(error_of(with(false)), "(no error)");
  EXPECT_EQ(read().config->strip_accents, false);
  write("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  EXPECT_EQ(error_of(with(false)), "(no error)");
  EXPECT_EQ(read().config->strip_accents, false);
  // This class takes all rules from tokenizer.json.
  write("tokenizer_config.json",
        R"({"tokenizer_class": "PreTrainedTokenizerFast", "strip_accents": true})");
  EXPECT_THAT(error_of(with(false)), HasSubstr("has strip_accents true, tokenizer.json has false"));
  EXPECT_EQ(error_of(with(true)), "(no error)");
  write("tokenizer_config.json",
        R"({"tokenizer_class": "PreTrainedTokenizerFast", "tokenize_chinese_chars": false})");
  const auto with_characters = [](bool splits) {
    return [=](Json& json) { json["normalizer"]["handle_chinese_chars"] = splits; };
  };
  EXPECT_THAT(error_of(with_characters(true)),
              HasSubstr("has tokenize_chinese_chars false, tokenizer.json has "
                        "handle_chinese_chars true"));
  EXPECT_EQ(error_of(with_characters(false)), "(no error)");
}

// Newer versions of transformers name the special tokens that only one model has.
TEST_F(TokenizerFilesTest, SpecialTokensWithNamesOfAModelsOwn) {
  write("vocab.txt", kWords);
  const auto config = [](const char* token) {
    return fmt::format(
        R"({{"do_lower_case": true, "model_specific_special_tokens": {{"x_token": "{}"}}}})",
        token);
  };
  write("tokenizer_config.json", config("b"));
  EXPECT_EQ(read().vocabulary.added,
            (std::vector<AddedToken>{{.id = 6, .content = "b", .special = true}}));
  write("tokenizer_config.json", config("<x>"));
  EXPECT_THAT(error(), HasSubstr("the special token \"<x>\" has no id"));
}

}  // namespace
}  // namespace onebit::formats
