// Compares with goldens of Hugging Face's `tokenizers`, written by tools/make_tokenizer_folders.py.
#include "onebit/data/tokenizer_files/pipeline_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/text/tokenizer.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::formats {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Path kGolden = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/pipelines";

class PipelineGolden : public testing::TestWithParam<const char*> {};

std::string listed(const std::vector<text::Piece>& pieces) {
  std::string list;
  for (const text::Piece& piece : pieces) {
    list += fmt::format("{}{}:{}:{}", list.empty() ? "" : " ", piece.id, piece.begin, piece.end);
  }
  return list;
}

TEST_P(PipelineGolden, EqualsTheLibraryLineByLine) {
  const PipelineJson parsed =
      parse_pipeline(read_json(kGolden / GetParam() / "tokenizer.json"), "tokenizer.json");
  TokenizerFiles files = read_tokenizer_alone(kGolden / GetParam() / "tokenizer.json");
  text::Pipeline pipeline(parsed.rules, files.vocabulary.added, parsed.vocabulary);
  const Json golden = read_json(kGolden / "lines.json");
  ASSERT_GT(golden.size(), 200u);
  for (const Json& line : golden) {
    const std::string text = line["text"].get<std::string>();
    std::vector<text::Piece> pieces;
    std::vector<int32_t> ids, piece_ids;
    pipeline.encode_with_offsets(text, pieces);
    pipeline.encode(text, ids);
    for (const text::Piece& piece : pieces) piece_ids.push_back(piece.id);
    EXPECT_EQ(listed(pieces), line[GetParam()].get<std::string>()) << text;
    EXPECT_EQ(ids, piece_ids) << text;
    ids.clear();
    pipeline.encode(text, ids);
    EXPECT_EQ(ids, piece_ids) << "from the cache: " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineGolden,
                         testing::Values("unigram", "bytes", "byte-fallback", "steps", "words",
                                         "word-steps"),
                         [](const auto& chosen) {
                           std::string name = chosen.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(PipelineJson, ReadsAnyBytes) {
  const PipelineJson parsed =
      parse_pipeline(read_json(kGolden / "unigram" / "tokenizer.json"), "tokenizer.json");
  text::Pipeline pipeline(parsed.rules, {}, parsed.vocabulary);
  std::vector<int32_t> broken, replaced;
  pipeline.encode("a\xFF\xC3 b", broken);
  pipeline.encode("a\uFFFD\uFFFD b", replaced);
  EXPECT_EQ(broken, replaced);
}

// CLIP's form: a word's first, further and last byte have other symbols. The pieces are those of
// `tokenizers`.
TEST(PipelineJson, BytesHaveSymbolsByTheirPlaceInTheWord) {
  const auto pieces_of = [](const nlohmann::json& settings) {
    Json json = {{"normalizer", nullptr},
                 {"pre_tokenizer",
                  {{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"trim_offsets", true},
                   {"use_regex", true}}},
                 {"model",
                  {{"type", "BPE"},
                   {"unk_token", "[UNK]"},
                   {"vocab",
                    {{"[UNK]", 0},
                     {"a", 1},
                     {"b", 2},
                     {"a</w>", 3},
                     {"b</w>", 4},
                     {"ab</w>", 5},
                     {"##a", 6},
                     {"##b", 7},
                     {"##b</w>", 8},
                     {"ab", 9},
                     {"a##", 10}}},
                   {"merges", Json::array({"a b</w>"})}}}};
    for (const auto& [key, value] : settings.items()) json["model"][key] = value;
    const PipelineJson parsed = parse_pipeline(parse_json(json.dump(), "t.json"), "t.json");
    text::Pipeline pipeline(parsed.rules, {}, parsed.vocabulary);
    std::vector<text::Piece> pieces;
    pipeline.encode_with_offsets("ab!aba", pieces);
    const std::string all = listed(pieces);
    pieces.clear();
    pipeline.encode_with_offsets("zzb", pieces);
    return all + " | " + listed(pieces);
  };
  EXPECT_EQ(pieces_of({{"end_of_word_suffix", "</w>"}}),
            "5:0:2 0:2:3 1:3:4 2:4:5 3:5:6 | 0:0:1 0:1:2 4:2:3");
  EXPECT_EQ(pieces_of({{"end_of_word_suffix", "</w>"}, {"fuse_unk", true}}),
            "5:0:2 0:2:3 1:3:4 2:4:5 3:5:6 | 0:0:2 4:2:3");
  EXPECT_EQ(pieces_of({{"continuing_subword_prefix", "##"}, {"merges", Json::array()}}),
            "1:0:1 7:1:2 0:2:3 1:3:4 7:4:5 6:5:6 | 0:0:1 0:1:2 7:2:3");
  EXPECT_THAT(message_of([&] {
                pieces_of({{"byte_fallback", true}});
              }),
              HasSubstr("t.json: key `model`: `byte_fallback` is true after ByteLevel"));
}

Json bytes_json() {
  return read_json(kGolden / "bytes" / "tokenizer.json");
}
Json unigram_json() {
  return read_json(kGolden / "unigram" / "tokenizer.json");
}

std::string error_of(const Json& json) {
  return message_of([&] { parse_pipeline(json, "t.json"); });
}

TEST(PipelineJson, NamesWhatItDoesNotHave) {
  Json json = bytes_json();
  json["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", Json::array({{{"type", "NFC"}}, {{"type", "Nmt"}}})}};
  EXPECT_THAT(error_of(json),
              AllOf(HasSubstr("t.json: key `normalizer.normalizers[1]`"), HasSubstr("Nmt")));
  json = bytes_json();
  json["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"Regex", "\\s+"}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  EXPECT_THAT(error_of(json), AllOf(HasSubstr("pre_tokenizer.pattern"), HasSubstr("\\s+")));
  json = bytes_json();
  json["pre_tokenizer"]["odd"] = true;
  EXPECT_THAT(error_of(json), HasSubstr("pre_tokenizer.odd"));
  json = bytes_json();
  json["model"]["dropout"] = 0.1;
  EXPECT_THAT(error_of(json), HasSubstr("model.dropout"));
}

TEST(PipelineJson, NamesBrokenVocabularies) {
  Json json = bytes_json();
  json["model"]["vocab"].begin().value() = 5u;
  EXPECT_THAT(error_of(json), HasSubstr("which is the id of"));
  json = bytes_json();
  json["model"]["merges"].push_back(Json::array({"\u4e00", "a"}));
  EXPECT_THAT(error_of(json), HasSubstr("the vocabulary has no \"\u4e00\""));
  json["model"]["merges"].back() = "abc";
  EXPECT_THAT(error_of(json), HasSubstr("model.merges["));
  json = unigram_json();
  json["model"]["unk_id"] = nullptr;
  EXPECT_THAT(error_of(json), HasSubstr("model.unk_id"));
  json = unigram_json();
  json["model"]["vocab"][3] = "piece";
  EXPECT_THAT(error_of(json), HasSubstr("model.vocab[3]"));
}

TEST(PipelineJson, NamesADamagedCharacterMap) {
  const auto with_map = [](const std::string& map) {
    Json json = unigram_json();
    json["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", map}};
    return json;
  };
  EXPECT_THAT(error_of(with_map("AAAA")), HasSubstr("normalizer.precompiled_charsmap"));
  EXPECT_THAT(error_of(with_map("?")), HasSubstr("it is not base64"));
  EXPECT_THAT(error_of(with_map("/////w==")), HasSubstr("its trie has"));
  EXPECT_THAT(error_of(with_map("CAAAAAAFAAABAACAw6kA")),
              HasSubstr("its trie leads to byte 1 of the values, where none begins"));
}

TEST(PipelineJson, PrefixesThatDisagree) {
  Json json = unigram_json();
  json["pre_tokenizer"] = {{"type", "Metaspace"},
                           {"replacement", "\u2581"},
                           {"prepend_scheme", "always"},
                           {"add_prefix_space", false}};
  EXPECT_THAT(error_of(json), HasSubstr("add_prefix_space"));
}

// The model's files are kept as they are.
TEST(PipelineJson, AFolderIsWrittenAsItWasRead) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "tokenizer.json",
                        read_file(kGolden / "unigram" / "tokenizer.json"));
  const std::string config = R"({"tokenizer_class": "XLMRobertaTokenizer", "cls_token": "<s>",
    "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>",
    "model_max_length": 100})";
  write_file_atomically(folder.path() / "tokenizer_config.json", config);
  const TokenizerFiles files = read_tokenizer(folder.path());
  EXPECT_EQ(files.config->model_max_length, 100);
  EXPECT_EQ(files.vocabulary.pair, (text::PairTemplate{.separators = 2, .second_segment = 0}));
  for (const TextFile& file : tokenizer_files(files)) {
    EXPECT_EQ(file.text, read_file(folder.path() / file.name)) << file.name;
  }
  const auto vocabulary = text::Vocabulary::from_parts(files.vocabulary, "here");
  EXPECT_EQ(vocabulary.token(vocabulary.mask_id()), "<mask>");
  EXPECT_TRUE(vocabulary.is_continuation(*vocabulary.find("s")));
  EXPECT_FALSE(vocabulary.is_continuation(vocabulary.cls_id()));
}

// `tokenizers` 0.23 finds the last of repeated pieces, with its score, and gives unknown text the
// model's unk_id. New tokens follow all pieces of the list.
TEST(PipelineJson, OfARepeatedPieceTheLastCounts) {
  Json added = Json::array();
  for (const auto& [id, content] :
       {std::pair(0, "<unk>"), std::pair(1, "<s>"), std::pair(2, "</s>"), std::pair(4, "<pad>"),
        std::pair(11, "<mask>"), std::pair(12, "<new>")}) {
    added.push_back({{"id", id}, {"content", content}, {"special", true}, {"normalized", false}});
  }
  const Json file = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}}},
      {"post_processor", {{"type", "BertProcessing"}, {"cls", {"<s>", 1}}, {"sep", {"</s>", 2}}}},
      {"model",
       {{"type", "Unigram"},
        {"unk_id", 0},
        {"vocab", parse_json(R"([["<unk>", 0], ["<s>", 0], ["</s>", 0], ["<unk>", 0], ["<pad>", 0],
                                 ["▁a", -1], ["▁b", -2], ["▁a", -9], ["▁", -3], ["a", -1.5],
                                 ["c", -5], ["<mask>", 0]])",
                             "pieces")}}}};
  const TemporaryFolder folder;
  write_file_atomically(folder / "tokenizer.json", json_text(file));
  // transformers writes the ids that count.
  write_file_atomically(folder / "tokenizer_config.json",
                        R"({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>",
                            "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>",
                            "mask_token": "<mask>", "added_tokens_decoder": {"3":
                            {"content": "<unk>", "special": true, "normalized": false}}})");
  const auto vocabulary = std::make_shared<const text::Vocabulary>(
      text::Vocabulary::from_parts(read_tokenizer(folder.path()).vocabulary, "here"));
  EXPECT_EQ(vocabulary->unknown_id(), 3);
  text::Tokenizer tokenizer(vocabulary, text::Casing::kCased);
  const auto ids = [&](const char* text) {
    std::vector<int32_t> found;
    tokenizer.encode(text, found);
    return found;
  };
  EXPECT_EQ(ids("a b"), (std::vector<int32_t>{8, 9, 6}));
  EXPECT_EQ(ids("a zz b"), (std::vector<int32_t>{8, 9, 8, 0, 6}));
  EXPECT_EQ(ids("<unk> a"), (std::vector<int32_t>{3, 8, 9}));
  EXPECT_EQ(ids("x<pad>a<new>"), (std::vector<int32_t>{8, 0, 4, 8, 9, 12}));
  EXPECT_EQ(ids("ac<mask>"), (std::vector<int32_t>{8, 9, 10, 11}));
}

// transformers' XLMRobertaTokenizer gives unknown text the id 3, whatever the file says.
TEST(PipelineJson, TheUnknownPieceIsThatOfTheClass) {
  Json json = parse_json(read_file(kGolden / "unigram" / "tokenizer.json"), "golden");
  const TemporaryFolder folder;
  write_file_atomically(folder / "tokenizer_config.json",
                        R"({"tokenizer_class": "XLMRobertaTokenizer", "cls_token": "<s>",
                            "sep_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>",
                            "unk_token": "<unk>"})");
  json["model"]["vocab"] = parse_json(R"([["<s>", 0], ["<pad>", 0], ["</s>", 0], ["<unk>", 0],
                                          ["\u2581", -2], ["a", -3], ["<mask>", 0]])",
                                      "pieces");
  json["model"]["unk_id"] = 0;
  json["added_tokens"] = Json::array();
  json["post_processor"] = nullptr;
  write_file_atomically(folder / "tokenizer.json", json_text(json));
  const TokenizerFiles files = read_tokenizer(folder.path());
  text::Tokenizer tokenizer(std::make_shared<const text::Vocabulary>(
                                text::Vocabulary::from_parts(files.vocabulary, "here")),
                            text::Casing::kCased);
  std::vector<int32_t> ids;
  tokenizer.encode("a zz", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{4, 5, 4, 3}));
}

TEST(PipelineJson, ExplainsEveryPiece) {
  const auto vocabulary = std::make_shared<const text::Vocabulary>(text::Vocabulary::from_parts(
      read_tokenizer_alone(kGolden / "unigram" / "tokenizer.json").vocabulary, "here"));
  const text::Tokenizer tokenizer(vocabulary, text::Casing::kCased);
  std::vector<text::ExplainedWord> words;
  tokenizer.explain("<mask> onebit \u6f22", words);
  std::vector<text::WordOutcome> outcomes;
  for (const text::ExplainedWord& word : words) outcomes.push_back(word.outcome);
  EXPECT_EQ(outcomes.front(), text::WordOutcome::kSpecialToken);
  EXPECT_EQ(outcomes.back(), text::WordOutcome::kNoMatch);
  EXPECT_THAT(outcomes, testing::Contains(text::WordOutcome::kAddedToken));
}

}  // namespace
}  // namespace onebit::formats
