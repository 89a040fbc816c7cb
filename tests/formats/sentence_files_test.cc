#include "onebit/formats/sentence_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/base/json.h"
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
  for (const SentencePooling pooling : {SentencePooling::kMean, SentencePooling::kFirst}) {
    for (const bool normalize : {true, false}) {
      for (const int64_t length : {0, 128}) {
        const TemporaryFolder folder;
        const SentenceFiles files{
            .pooling = pooling, .normalize = normalize, .max_sequence_length = length};
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
            (SentenceFiles{
                .pooling = SentencePooling::kMean, .normalize = true, .max_sequence_length = 256}));
  write("1_Pooling/config.json", R"({"embedding_dimension": 384, "pooling_mode": "cls"})");
  EXPECT_EQ(read_sentence_files(folder_.path())->pooling, SentencePooling::kFirst);
}

TEST_F(SentenceFilesTest, WhatIsNotSupportedIsNamed) {
  write_published();
  write("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})");
  EXPECT_THAT(error(), HasSubstr("1_Pooling/config.json: pools by pooling_mode_max_tokens"));
  write("1_Pooling/config.json",
        R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})");
  EXPECT_THAT(error(), HasSubstr("pooling_mode_cls_token and pooling_mode_mean_tokens"));
  write("1_Pooling/config.json", "{}");
  EXPECT_THAT(error(), HasSubstr("pools by nothing"));
  write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": 1})");
  EXPECT_THAT(error(), HasSubstr("pooling_mode_mean_tokens"));

  write_published();
  write("config_sentence_transformers.json", R"({"default_prompt_name": "query"})");
  EXPECT_THAT(error(), HasSubstr("the prompt \"query\" is put before every text"));

  write_published();
  write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
                            {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
                            {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])");
  EXPECT_THAT(error(), HasSubstr("modules.json: the module Dense is not supported"));
  write("modules.json", R"([{"type": "sentence_transformers.models.Transformer"}])");
  EXPECT_THAT(error(), HasSubstr("contains no Pooling module"));
  write("modules.json", R"([{"type": "x.Transformer", "path": "0_BERT"}])");
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

}  // namespace
}  // namespace onebit::formats
