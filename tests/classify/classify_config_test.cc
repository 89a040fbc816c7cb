#include "onebit/apps/classify/classify_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "onebit/training/finetune/fine_tuning_config.h"
#include "tests/base/message_of.h"
#include "tests/classify/text_files.h"

namespace onebit::classify {
namespace {

using ::testing::HasSubstr;

ClassifyConfig config_of(const char* data, const char* classify,
                         const std::vector<std::string>& overrides = {}) {
  const std::string text = fmt::format(
      R"({{"task": "classify", "train_batch_size": 8,
           "optimizer": {{"type": "Adam", "params": {{"lr": 1e-3}}}},
           "data": {}, "classify": {}}})",
      data, classify);
  Recipe recipe{.values = parse_json(text, "r.json"), .place = "r.json"};
  apply_overrides(recipe, overrides);
  return parse_classify_recipe(recipe);
}

TEST(ClassifyConfig, AKeyThatChangesNothingIsAnError) {
  const auto message = [](const ClassifyConfig& config, Problem problem, size_t labels) {
    return message_of([&] { require_used_keys(config, problem, labels); });
  };
  for (const auto& [data, classify, key] :
       {std::tuple(R"({"label_separator": "|"})", "{}", "data.label_separator"),
        {"{}", R"({"threshold": 0.7})", "classify.threshold"}}) {
    const ClassifyConfig config = config_of(data, classify);
    for (const Problem problem : {Problem::kSingleLabel, Problem::kRegression}) {
      EXPECT_THAT(message(config, problem, 2),
                  HasSubstr(fmt::format("r.json: key `{}` is given, and would change nothing: a "
                                        "model for {} gives an example one ",
                                        key, name_of(problem))));
    }
    EXPECT_EQ(message(config, Problem::kMultiLabel, 3), "(no error)");
  }
  const ClassifyConfig positive = config_of("{}", R"({"positive_label": "a"})");
  EXPECT_EQ(message(positive, Problem::kSingleLabel, 2), "(no error)");
  EXPECT_THAT(message(positive, Problem::kSingleLabel, 3), HasSubstr("and the model has 3"));
  EXPECT_THAT(message(positive, Problem::kMultiLabel, 2),
              HasSubstr("the model is for multi_label_classification"));
}

// The recipe that a run keeps has every key. On the command line even the default is meant.
TEST(ClassifyConfig, DefaultsInAFileAreNoRequest) {
  const char *data = R"({"label_separator": ","})", *classify = R"({"threshold": 0.5})";
  EXPECT_TRUE(config_of(data, classify).keys_of_several.empty());
  EXPECT_EQ(config_of("{}", "{}", {"data.label_separator=,"}).keys_of_several,
            (std::vector<std::string>{"the command line: key `data.label_separator`"}));
}

}  // namespace
}  // namespace onebit::classify
