#include "onebit/data/formats/sentence_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;

class SentenceFilesTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const Path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    write_file_atomically(path, text);
  }
  // all-MiniLM-L6-v2's, as it is published.
  void write_published() {
    write("modules.json", R"([
  {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
])");
    write("1_Pooling/config.json", R"({
  "word_embedding_dimension": 384,
  "pooling_mode_cls_token": false,
  "pooling_mode_mean_tokens": true,
  "pooling_mode_max_tokens": false,
  "pooling_mode_mean_sqrt_len_tokens": false
})");
    write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": false})");
    write("config_sentence_transformers.json",
          R"({"__version__": {"sentence_transformers": "2.0.0", "transformers": "4.6.1",
              "pytorch": "1.8.1"}})");
  }
  std::string error() {
    return message_of([&] { read_sentence_files(folder_.path()); });
  }

  TemporaryFolder folder_;
};

TEST_F(SentenceFilesTest, WhatIsWrittenIsRead) {
  EXPECT_FALSE(read_sentence_files(folder_.path()).has_value());
  const DenseModule wide{.inputs = 32,
                         .outputs = 2,
                         .activation = DenseActivation::kGelu,
                         .weight = std::vector<float>(64, 0.5F),
                         .bias = {1, -2}};
  const DenseModule narrow{.inputs = 2,
                           .outputs = 2,
                           .activation = DenseActivation::kIdentity,
                           .has_residual = true,
                           .weight = {1, 2, 3, 4}};
  for (const SentencePooling pooling : {SentencePooling::kMean, SentencePooling::kFirst}) {
    for (const bool normalize : {true, false}) {
      for (const int64_t length : {0, 128}) {
        const TemporaryFolder folder;
        SentenceFiles files{
            .pooling = {pooling}, .normalize = normalize, .max_sequence_length = length};
        if (length > 0) files.dense = {wide, narrow};
        files.dimensions = length > 0 ? 1 : 0;
        write_sentence_files(folder.path(), files, 32);
        EXPECT_EQ(read_sentence_files(folder.path()), files);
        // sentence-transformers asks for the folders of all modules.
        for (const Json& module : read_json(folder / "modules.json")) {
          EXPECT_TRUE(std::filesystem::is_directory(folder / module.at("path").get<std::string>()));
        }
        const Json modes = read_json(folder / "1_Pooling/config.json");
        EXPECT_EQ(modes.at("word_embedding_dimension"), 32);
        EXPECT_EQ(modes.at("pooling_mode_mean_tokens"), pooling == SentencePooling::kMean);
        EXPECT_EQ(modes.at("pooling_mode_cls_token"), pooling == SentencePooling::kFirst);
        EXPECT_EQ(modes.at("pooling_mode_max_tokens"), false);
      }
    }
  }
}

TEST_F(SentenceFilesTest, PublishedFolders) {
  write_published();
  EXPECT_EQ(read_sentence_files(folder_.path()),
            (SentenceFiles{.normalize = true, .max_sequence_length = 256}));
  write("1_Pooling/config.json", R"({"embedding_dimension": 384, "pooling_mode": "cls"})");
  EXPECT_EQ(read_sentence_files(folder_.path())->pooling, std::vector{SentencePooling::kFirst});
}

// The same modules, but other numbers than one vector of a text.
TEST_F(SentenceFilesTest, ModelsOfOtherTypesAreRefused) {
  write_published();
  write("config_sentence_transformers.json", R"({"model_type": "SentenceTransformer"})");
  EXPECT_EQ(error(), "(no error)");
  for (const char* type : {"SparseEncoder", "CrossEncoder"}) {
    write("config_sentence_transformers.json", fmt::format(R"({{"model_type": "{}"}})", type));
    EXPECT_THAT(error(), HasSubstr(fmt::format("key `model_type` is \"{}\"", type)));
  }
}

// As version 6 writes a folder: no max_seq_length, one name for the pooling.
TEST_F(SentenceFilesTest, FoldersOfVersion6) {
  write_published();
  write("modules.json", R"([
  {"idx": 0, "name": "0", "path": "",
   "type": "sentence_transformers.base.modules.transformer.Transformer"},
  {"idx": 1, "name": "1", "path": "1_Pooling",
   "type": "sentence_transformers.sentence_transformer.modules.pooling.Pooling"}])");
  write("1_Pooling/config.json",
        R"({"embedding_dimension": 384, "pooling_mode": "mean", "include_prompt": false})");
  write("sentence_bert_config.json", R"({"transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings", "processing_kwargs": {}, "unpad_inputs": null})");
  write("config_sentence_transformers.json", R"({"__version__": {"sentence_transformers": "6.2.0"},
    "model_type": "SentenceTransformer", "prompts": {"query": "query: ", "document": ""},
    "default_prompt_name": "query", "similarity_fn_name": "dot"})");
  write("tokenizer_config.json", R"({"do_lower_case": true, "model_max_length": 256})");
  const SentenceFiles files{.normalize = false,
                            .max_sequence_length = 256,
                            .prompts = {{"query", "query: "}, {"document", ""}},
                            .default_prompt = "query",
                            .pools_prompt = false,
                            .similarity = "dot"};
  EXPECT_EQ(read_sentence_files(folder_.path()), files);
  const TemporaryFolder copy;
  write_sentence_files(copy.path(), files, 384);
  EXPECT_EQ(read_sentence_files(copy.path()), files);
  // A limit of its own comes first. Without any, the positions are the limit.
  write("sentence_bert_config.json", R"({"max_seq_length": 64})");
  EXPECT_EQ(read_sentence_files(folder_.path())->max_sequence_length, 64);
  write("sentence_bert_config.json", R"({"max_seq_length": null})");
  EXPECT_EQ(read_sentence_files(folder_.path())->max_sequence_length, 256);
  write("tokenizer_config.json", R"({"do_lower_case": true, "model_max_length": 1e30})");
  std::filesystem::remove(folder_ / "sentence_bert_config.json");
  EXPECT_EQ(read_sentence_files(folder_.path())->max_sequence_length, 0);
}

// Older versions name the file by the encoder's family. The first one that says anything counts.
TEST_F(SentenceFilesTest, TheSentenceConfigOfEachFamily) {
  write_published();
  std::filesystem::remove(folder_ / "sentence_bert_config.json");
  int64_t length = 70;
  for (const char* family :
       {"xlnet", "xlm-roberta", "albert", "camembert", "distilbert", "roberta", "bert"}) {
    const std::string name = fmt::format("sentence_{}_config.json", family);
    write(name, fmt::format(R"({{"max_seq_length": {}}})", ++length));
    EXPECT_EQ(read_sentence_files(folder_.path())->max_sequence_length, length) << name;
  }
  write("sentence_bert_config.json", "{}");
  EXPECT_EQ(read_sentence_files(folder_.path())->max_sequence_length, length - 1);
  write("sentence_roberta_config.json", R"({"odd": 1})");
  EXPECT_THAT(message_of([&] { read_sentence_files(folder_.path()); }),
              HasSubstr("sentence_roberta_config.json: key `odd`"));
}

// Version 1 wrote the encoder into a folder of its own.
TEST_F(SentenceFilesTest, FoldersOfVersion1) {
  write_published();
  for (const char* name : {"0_Transformer", "0_BERT"}) {
    const std::string kind = std::string(name).substr(2);
    write("modules.json", R"([{"idx": 0, "name": "0", "path": ")" + std::string(name) +
                              R"(", "type": "sentence_transformers.models.)" + kind + R"("},
  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
    std::filesystem::remove(folder_ / "sentence_bert_config.json");
    write(std::string(name) + "/sentence_bert_config.json", R"({"max_seq_length": 75})");
    const Path encoder = folder_ / name;
    EXPECT_EQ(sentence_encoder_in(folder_.path()), encoder);
    EXPECT_EQ(read_sentence_files(encoder)->max_sequence_length, 75);
  }
  EXPECT_FALSE(read_sentence_files(folder_ / "1_Pooling").has_value());
  EXPECT_FALSE(has_config_of_sentences(folder_.path() / "1_Pooling"));
  // It also wrote its version beside modules.json, under the name of a model's config.
  write("config.json", R"({"__version__": "1.0.0"})");
  EXPECT_TRUE(has_config_of_sentences(folder_.path()));
  write("config.json", R"({"__version__": "1.0.0", "vocab_size": 9})");
  EXPECT_FALSE(has_config_of_sentences(folder_.path()));
}

TEST_F(SentenceFilesTest, ModulesAreInsideTheFolder) {
  write_published();
  for (const char* path : {"../other", "/etc", "1_Pooling/../../other"}) {
    write("modules.json",
          R"([{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": ")" +
              std::string(path) + R"("}])");
    EXPECT_THAT(error(), HasSubstr("leads out of the folder")) << path;
  }
}

TEST_F(SentenceFilesTest, WhatIsNotSupportedIsNamed) {
  write_published();
  write("config_sentence_transformers.json", R"({"default_prompt_name": "query"})");
  EXPECT_THAT(error(), HasSubstr("`default_prompt_name` is \"query\", which is not among"));
  write("config_sentence_transformers.json", R"({"prompts": {"query": 3}})");
  EXPECT_THAT(error(), HasSubstr("the prompt \"query\" is not a text"));
  write("config_sentence_transformers.json", R"({"similarity_fn_name": "x"})");
  EXPECT_THAT(error(), HasSubstr("similarity_fn_name"));
  write("config_sentence_transformers.json", R"({"odd": 1})");
  EXPECT_THAT(error(), HasSubstr("config_sentence_transformers.json: key `odd` is not known"));

  write_published();
  write("sentence_bert_config.json", R"({"transformer_task": "fill-mask"})");
  EXPECT_THAT(error(), HasSubstr("transformer_task"));
  write("sentence_bert_config.json", R"({"query_length": 32})");
  EXPECT_THAT(error(), HasSubstr("`query_length` is 32"));

  write_published();
  write("config_sentence_transformers.json", R"({"truncate_dim": -1})");
  EXPECT_THAT(error(), HasSubstr("`truncate_dim`"));

  write_published();
  write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
                            {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
                            {"type": "sentence_transformers.models.LSTM", "path": "2_LSTM"}])");
  EXPECT_THAT(error(), HasSubstr("modules.json: the module LSTM (2_LSTM) is not supported"));
  write("modules.json", R"([{"type": "sentence_transformers.models.Transformer"}])");
  EXPECT_THAT(error(), HasSubstr("contains no Pooling module"));
  write("modules.json", R"([{"type": "sentence_transformers.models.BERT", "path": "0_BERT"},
                            {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
  EXPECT_THAT(error(), HasSubstr("the encoder is in"));
  write("modules.json", "{}");
  EXPECT_THAT(error(), HasSubstr("must be a list of modules"));
  write("modules.json", "[3]");
  EXPECT_THAT(error(), HasSubstr("module 0 is not an object"));

  write_published();
  write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_TRUE(read_sentence_files(folder_.path()).has_value());
  write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": true})");
  EXPECT_THAT(error(), HasSubstr("text is lower-cased"));
  write("sentence_bert_config.json", R"({"max_seq_length": -3})");
  EXPECT_THAT(error(), HasSubstr("max_seq_length"));
}

// Modules that make other vectors than those that onebit computes.
TEST_F(SentenceFilesTest, OtherModulesAreNamed) {
  const std::string models = "sentence_transformers.models.";
  const Json encoder = {{"type", models + "Transformer"}, {"path", ""}};
  const Json pooling = {{"type", models + "Pooling"}, {"path", "1_Pooling"}};
  const Json normalize = {{"type", models + "Normalize"}, {"path", "2_Normalize"}};
  const auto error_of = [&](const Json& modules) {
    write_published();
    write("modules.json", modules.dump());
    return error();
  };
  EXPECT_EQ(error_of({encoder, pooling}), "(no error)");
  EXPECT_THAT(error_of({encoder, normalize, pooling}),
              HasSubstr("modules.json: has the modules Transformer, Normalize, Pooling"));
  EXPECT_THAT(error_of({pooling, encoder}), HasSubstr("the modules Pooling, Transformer"));
  EXPECT_THAT(error_of({encoder, encoder, pooling}), HasSubstr("Transformer, Transformer"));
  EXPECT_THAT(error_of({encoder, pooling, normalize, normalize}), HasSubstr("once each"));
  const Json dense = {{"type", models + "Dense"}, {"path", "2_Dense"}};
  EXPECT_THAT(error_of({encoder, dense, pooling}), HasSubstr("Transformer, Dense, Pooling"));
  EXPECT_THAT(error_of({encoder, pooling, normalize, dense}),
              HasSubstr("Pooling, Normalize, Dense"));
  EXPECT_THAT(error_of({encoder, pooling, dense}), HasSubstr("2_Dense/config.json"));
  Json own = encoder;
  own["type"] = "custom_st.Transformer";
  EXPECT_THAT(error_of({own, pooling}), HasSubstr("the module custom_st.Transformer is not one"));
  Json with_arguments = encoder;
  with_arguments["kwargs"] = {"task"};
  EXPECT_THAT(error_of({with_arguments, pooling}), HasSubstr("`[0].kwargs` is [\"task\"]"));
}

TEST_F(SentenceFilesTest, DenseLayersFitEachOther) {
  const DenseModule first{.inputs = 4, .outputs = 2, .weight = std::vector<float>(8, 1)};
  SentenceFiles files{.dense = {first, first}};
  const TemporaryFolder folder;
  write_sentence_files(folder.path(), files, 4);
  EXPECT_THAT(message_of([&] { read_sentence_files(folder.path()); }),
              HasSubstr("3_Dense: reads vectors of 4 numbers, and the Dense before it makes "
                        "vectors of 2"));
  files.dense = {first};
  EXPECT_EQ(vector_length(files, 4), 2);
  files.pooling = {SentencePooling::kFirst, SentencePooling::kMean};
  EXPECT_EQ(vector_length(files, 2), 2);
  EXPECT_THAT(message_of([&] { vector_length(files, 4); }),
              HasSubstr("reads vectors of 4 numbers, and the pooling cls+mean makes vectors of 8"));
}

}  // namespace
}  // namespace onebit::formats
