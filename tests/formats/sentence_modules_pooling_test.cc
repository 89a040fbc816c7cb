#include "onebit/data/formats/sentence_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;
using enum SentencePooling;

class SentencePoolingTest : public ::testing::Test {
 protected:
  PoolingModule read(const std::string& text) {
    write_file_atomically(file_, text);
    return read_pooling(file_);
  }
  std::string error(const std::string& text) {
    return message_of([&] { read(text); });
  }

  TemporaryFolder folder_;
  Path file_ = folder_ / "config.json";
};

// The words and flags of sentence-transformers 6.2 (Pooling.POOLING_MODES and
// _LEGACY_POOLING_MODE_KWARGS), whose order is that of several modes.
TEST_F(SentencePoolingTest, EveryModeHasAWordAndAFlag) {
  const struct {
    SentencePooling mode;
    const char *word, *flag;
  } known[] = {{kFirst, "cls", "pooling_mode_cls_token"},
               {kMax, "max", "pooling_mode_max_tokens"},
               {kMean, "mean", "pooling_mode_mean_tokens"},
               {kMeanSqrtLength, "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
               {kWeightedMean, "weightedmean", "pooling_mode_weightedmean_tokens"},
               {kLast, "lasttoken", "pooling_mode_lasttoken"}};
  std::vector<SentencePooling> all;
  Json flags = Json::object();
  for (const auto& one : known) {
    const std::vector<SentencePooling> mode = {one.mode};
    EXPECT_EQ(read(json_text({{"pooling_mode", one.word}})).modes, mode);
    EXPECT_EQ(read(json_text({{"pooling_mode", {one.word}}})).modes, mode);
    EXPECT_EQ(read(json_text({{one.flag, true}})).modes, mode);
    EXPECT_EQ(pooling_modes(one.word), mode);
    EXPECT_STREQ(word_of(one.mode), one.word);
    all.push_back(one.mode);
    flags[one.flag] = true;
  }
  EXPECT_EQ(read(json_text(flags)).modes, all);
  EXPECT_EQ(words_of(all), "cls+max+mean+mean_sqrt_len_tokens+weightedmean+lasttoken");
  EXPECT_EQ(pooling_modes(words_of(all)), all);
  // With both, the words count.
  flags["pooling_mode"] = {"mean", "cls"};
  EXPECT_EQ(read(json_text(flags)).modes, (std::vector{kMean, kFirst}));
}

TEST_F(SentencePoolingTest, WhatIsWrittenIsRead) {
  const std::vector<SentencePooling> lists[] = {
      {kMax}, {kFirst, kLast}, {kLast, kFirst}, {kMean, kMean}};
  for (const auto& modes : lists) {
    for (const bool pools_prompt : {true, false}) {
      const PoolingModule module{modes, pools_prompt};
      write_pooling(file_, module, 8);
      EXPECT_EQ(read_pooling(file_), module);
    }
  }
  // The order of flags cannot be another, and only newer versions read the list.
  write_pooling(file_, {{kFirst, kLast}, true}, 8);
  EXPECT_EQ(read_json(file_).at("pooling_mode_lasttoken"), true);
  write_pooling(file_, {{kLast, kFirst}, true}, 8);
  EXPECT_EQ(read_json(file_).at("pooling_mode"), (Json{"lasttoken", "cls"}));
}

TEST_F(SentencePoolingTest, OthersAreNamed) {
  EXPECT_THAT(error("{}"), HasSubstr("config.json: pools by nothing"));
  EXPECT_EQ(error(R"({"word_embedding_dimension": 16})"), "(no error)") << "the mean, as elsewhere";
  EXPECT_THAT(error(R"({"pooling_mode_mean_tokens": false})"), HasSubstr("pools by nothing"));
  EXPECT_THAT(error(R"({"pooling_mode_mean_tokens": 1})"), HasSubstr("pooling_mode_mean_tokens"));
  EXPECT_THAT(error(R"({"pooling_mode": "attention"})"),
              HasSubstr("\"attention\" is not supported"));
  EXPECT_THAT(error(R"({"pooling_mode": ["mean", 3]})"), HasSubstr("3 is not supported"));
  EXPECT_THAT(error(R"({"pooling_mode": 3})"), HasSubstr("must be the name of a mode"));
  EXPECT_THAT(error(R"({"pooling_mode": "mean", "odd": 1})"), HasSubstr("`odd`"));
  EXPECT_THAT(error("[]"), HasSubstr("must be an object"));
  for (const char* words : {"", "mean+", "+mean", "Mean"}) {
    EXPECT_THAT(message_of([&] { pooling_modes(words); }), HasSubstr("known are cls, max"))
        << words;
  }
}

}  // namespace
}  // namespace onebit::formats
