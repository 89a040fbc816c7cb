#include "onebit/data/tokenizer_files/class_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/text_files.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;

// A folder without a model.
const Path kNoModel = "none";

Json made(const std::string& model, TokenizerConfigMembers members, const Path& folder,
          const char* normalizer = R"({"type": "NFC"})",
          const char* pre_tokenizer = R"({"type": "ByteLevel", "add_prefix_space": true})") {
  Json file = {{"normalizer", parse_json(normalizer, "n")},
               {"pre_tokenizer", parse_json(pre_tokenizer, "p")},
               {"model", {{"type", model}}}};
  return with_class_rules(folder, std::move(file), std::move(members), "tokenizer.json");
}

std::string text_of(const Json& file) {
  return json_text(file.at("normalizer")) + json_text(file.at("pre_tokenizer"));
}

constexpr const char* kQuotes = R"({"type":"Replace","pattern":{"String":"``"},"content":"\""},)"
                                R"({"type":"Replace","pattern":{"String":"''"},"content":"\""})";
constexpr const char* kWords =
    R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{"type":"Metaspace",)"
    R"("replacement":"▁","prepend_scheme":"always","split":true}]})";

// As transformers 5.24 has them in backend_tokenizer.to_str().
TEST(ClassRules, AreThoseOfTransformers) {
  EXPECT_EQ(text_of(made("Unigram", {.tokenizer_class = "AlbertTokenizer"}, kNoModel)),
            std::string(R"({"type":"Sequence","normalizers":[)") + kQuotes +
                R"(,{"type":"NFKD"},{"type":"StripAccents"},{"type":"Lowercase"}]})" + kWords);
  TokenizerConfigMembers plain = {.tokenizer_class = "AlbertTokenizerFast"};
  plain.keep_accents = true;
  plain.lower_case = false;
  EXPECT_EQ(text_of(made("Unigram", plain, kNoModel)),
            std::string(R"({"type":"Sequence","normalizers":[)") + kQuotes + "]}" + kWords);
  for (const char* name : {"XLMRobertaTokenizerFast", "CamembertTokenizer"}) {
    EXPECT_EQ(text_of(made("Unigram", {.tokenizer_class = name}, kNoModel)),
              std::string("null") + kWords)
        << name;
  }
  for (const char* name : {"RobertaTokenizer", "GPT2TokenizerFast", "LongformerTokenizer"}) {
    EXPECT_EQ(text_of(made("BPE", {.tokenizer_class = name}, kNoModel)),
              R"(null{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
              R"("use_regex":true})")
        << name;
  }
  EXPECT_EQ(text_of(made("BPE", {.tokenizer_class = "GemmaTokenizer"}, kNoModel)),
            R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})"
            R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious",)"
            R"("invert":false})");
}

// The classes build the model from the vocabulary alone.
TEST(ClassRules, TheModelHasTheSettingsOfTheClass) {
  const auto settings = [](const char* name, Json model) {
    Json file = {{"normalizer", nullptr}, {"pre_tokenizer", nullptr}, {"model", std::move(model)}};
    file = with_class_rules(kNoModel, std::move(file),
                            TokenizerConfigMembers{.tokenizer_class = name}, "tokenizer.json");
    file["model"].erase("type");
    return json_text(file["model"]);
  };
  const Json unigram = {{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", true}};
  EXPECT_EQ(settings("XLMRobertaTokenizer", unigram), R"({"unk_id":3,"byte_fallback":false})");
  EXPECT_EQ(settings("AlbertTokenizer", unigram), R"({"unk_id":1,"byte_fallback":false})");
  EXPECT_EQ(settings("PreTrainedTokenizerFast", unigram), R"({"unk_id":0,"byte_fallback":true})");
  Json named = unigram;
  named["vocab"] = parse_json(R"([["a", 0], ["<unk>", 0], ["<unk>", 0]])", "pieces");
  EXPECT_EQ(settings("CamembertTokenizer", named),
            R"({"unk_id":1,"byte_fallback":false,"vocab":[["a",0],["<unk>",0],["<unk>",0]]})");
  EXPECT_EQ(settings("RobertaTokenizer", {{"type", "BPE"},
                                          {"unk_token", "<unk>"},
                                          {"fuse_unk", true},
                                          {"ignore_merges", true},
                                          {"continuing_subword_prefix", nullptr}}),
            R"({"unk_token":null,"fuse_unk":false,"ignore_merges":false,)"
            R"("continuing_subword_prefix":null})");
  EXPECT_EQ(settings("GemmaTokenizer", {{"type", "BPE"}}),
            R"({"fuse_unk":true,"unk_token":"<unk>","byte_fallback":true})");
}

TEST(ClassRules, ThePrefixSpaceIsThatOfTheConfig) {
  TokenizerConfigMembers members = {.tokenizer_class = "RobertaTokenizer"};
  members.add_prefix_space = true;
  EXPECT_EQ(made("BPE", members, kNoModel).at("pre_tokenizer").at("add_prefix_space"), true);
  members = {.tokenizer_class = "XLMRobertaTokenizer"};
  members.add_prefix_space = false;
  EXPECT_EQ(made("Unigram", members, kNoModel)
                .at("pre_tokenizer")
                .at("pretokenizers")[1]
                .at("prepend_scheme"),
            "never");
}

// The compiled map is the only part of the file's normalizer that a class takes over.
TEST(ClassRules, ACompiledMapIsKept) {
  const Json file = made("Unigram", {.tokenizer_class = "XLMRobertaTokenizer"}, kNoModel,
                         R"({"type": "Sequence", "normalizers": [{"type": "NFKC"},
                             {"type": "Precompiled", "precompiled_charsmap": "AAAA"}]})");
  EXPECT_EQ(json_text(file.at("normalizer")),
            R"({"type":"Sequence","normalizers":[{"type":"Precompiled","precompiled_charsmap":)"
            R"("AAAA"}]})");
}

TEST(ClassRules, TheSameRulesInOlderWordsStay) {
  const char* older = R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
      {"type": "Metaspace", "replacement": "▁", "str_rep": "▁", "add_prefix_space": true}]})";
  const Json file =
      made("Unigram", {.tokenizer_class = "XLMRobertaTokenizer"}, kNoModel, "null", older);
  EXPECT_EQ(file.at("pre_tokenizer"), parse_json(older, "p"));
}

TEST(ClassRules, OtherClassesHaveNone) {
  const std::string own = R"({"type":"NFC"}{"type":"ByteLevel","add_prefix_space":true})";
  EXPECT_EQ(text_of(made("BPE", {.tokenizer_class = "PreTrainedTokenizerFast"}, kNoModel)), own);
  // transformers would not load byte pairs with that class.
  EXPECT_EQ(text_of(made("BPE", {.tokenizer_class = "AlbertTokenizer"}, kNoModel)), own);
  // For these models it takes the file alone.
  const TextFiles files;
  const Path config = files.write("config.json", R"({"model_type": "modernbert"})");
  EXPECT_EQ(text_of(made("BPE", {.tokenizer_class = "RobertaTokenizer"}, config.parent_path())),
            own);
}

TEST(ClassRules, WordPieceIsLowerCasedUnlessTheConfigSaysNo) {
  const auto checked = [](const char* name, bool is_bert, TokenizerJson json) {
    TokenizerConfigMembers members = {.tokenizer_class = name};
    members.is_bert = is_bert;
    return message_of([&] { check_word_piece_rules(members, json, "c.json"); });
  };
  const TokenizerJson cased = {.lower_case = false};
  EXPECT_THAT(checked("BertTokenizer", true, cased),
              HasSubstr("c.json: has no do_lower_case, so that text is lower-cased in "
                        "transformers, and tokenizer.json has lowercase false"));
  EXPECT_THAT(checked("MPNetTokenizer", false, cased), HasSubstr("has no do_lower_case"));
  EXPECT_EQ(checked("ConvBertTokenizer", true, cased), "(no error)");
  EXPECT_EQ(checked("PreTrainedTokenizerFast", false, cased), "(no error)");
  TokenizerJson accents;
  accents.strip_accents = false;
  EXPECT_THAT(checked("MPNetTokenizerFast", false, accents), HasSubstr("has no strip_accents"));
}

}  // namespace
}  // namespace onebit::formats
