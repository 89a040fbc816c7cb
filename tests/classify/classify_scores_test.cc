// Compares with values of scikit-learn and scipy, which tools/make_classify_goldens.py wrote.
#include "onebit/apps/classify/classify_scores.h"
#include "onebit/ground/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/ground/base/file.h"

namespace onebit::classify {
namespace {

using ::testing::HasSubstr;

Json goldens() {
  return read_json(Path(ONEBIT_SOURCE_DIR) / "tests/classify/golden/scores.json");
}

std::vector<std::string> names_of(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back("label " + std::to_string(i));
  return names;
}

Targets targets_in(const Json& golden) {
  Targets targets = {.problem = *problem_named(golden.at("problem").get<std::string>()),
                     .outputs = golden.at("labels").get<int64_t>()};
  if (targets.problem == Problem::kSingleLabel) {
    targets.classes = golden.at("truth").get<std::vector<int32_t>>();
  } else {
    targets.values = golden.at("truth").get<std::vector<float>>();
  }
  return targets;
}

Scores scores_of(const Json& golden) {
  const Targets targets = targets_in(golden);
  return score(targets, names_of(static_cast<size_t>(targets.outputs)),
               golden.at("outputs").get<std::vector<float>>(), {});
}

TEST(Scores, AreThoseOfScikitLearnAndScipy) {
  size_t figures = 0;
  const Json all = goldens();
  for (const Json& golden : all.at("cases")) {
    SCOPED_TRACE(golden.at("name").get<std::string>());
    const Scores scores = scores_of(golden);
    EXPECT_EQ(scores.metrics.size(), golden.at("figures").size());
    for (const auto& [name, wanted] : golden.at("figures").items()) {
      EXPECT_NEAR(metrics::value_of(scores.metrics, name), wanted.get<double>(), 1e-9) << name;
      ++figures;
    }
    if (!golden.contains("by_label")) continue;
    for (size_t i = 0; i < scores.by_label.size(); ++i) {
      const Json& wanted = golden.at("by_label")[i];
      EXPECT_NEAR(scores.by_label[i].precision(), wanted[0].get<double>(), 1e-9);
      EXPECT_NEAR(scores.by_label[i].recall(), wanted[1].get<double>(), 1e-9);
      EXPECT_NEAR(scores.by_label[i].f1(), wanted[2].get<double>(), 1e-9);
      EXPECT_EQ(static_cast<double>(scores.by_label[i].support()), wanted[3].get<double>());
    }
    if (golden.contains("confusion")) {
      EXPECT_EQ(json_of(scores).at("confusion").dump(), golden.at("confusion").dump());
    }
  }
  EXPECT_GE(figures, 70u);
}

TEST(Scores, MetricsHaveTheNamesThatAreListed) {
  const Json all = goldens();
  for (const Json& golden : all.at("cases")) {
    const Scores scores = scores_of(golden);
    const auto names = metric_names(scores.problem, static_cast<int64_t>(scores.labels.size()));
    ASSERT_EQ(names.size(), scores.metrics.size());
    for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i].name, scores.metrics[i].name);
  }
}

TEST(Scores, TheOtherClassMayBeThePositiveOne) {
  const Targets targets = {.outputs = 2, .classes = {0, 0, 1, 1}};
  const std::vector<float> outputs = {1, 0, 1, 0, 1, 0, 0, 1};  // 0, 0, 0, 1
  const auto f1 = [&](int64_t positive) {
    return metrics::value_of(score(targets, {"a", "b"}, outputs, {.positive = positive}).metrics,
                             "f1");
  };
  EXPECT_DOUBLE_EQ(f1(1), 2.0 / 3);
  EXPECT_DOUBLE_EQ(f1(0), 0.8);
}

TEST(Scores, TheThresholdDecidesWhichLabelsArePresent) {
  const Targets targets = {.problem = Problem::kMultiLabel, .outputs = 1, .values = {1, 0}};
  const std::vector<float> outputs = {-1, -3};
  const auto accuracy = [&](double threshold) {
    return metrics::value_of(score(targets, {"a"}, outputs, {.threshold = threshold}).metrics,
                             "accuracy");
  };
  EXPECT_EQ(accuracy(0.5), 0.5);
  EXPECT_EQ(accuracy(0.2), 1);
}

TEST(Scores, ACorrelationOfConstantsIsNoNumberAndNullInJson) {
  const Targets targets = {.problem = Problem::kRegression, .outputs = 1, .values = {1, 2}};
  const Scores scores = score(targets, {"LABEL_0"}, std::vector<float>{3, 3}, {});
  EXPECT_TRUE(std::isnan(metrics::value_of(scores.metrics, "pearson")));
  EXPECT_TRUE(json_of(scores).at("metrics").at("pearson").is_null());
  EXPECT_EQ(metrics::value_of(scores.metrics, "mse"), 2.5);
}

// Scores of `labels` classes where class 1 is taken for class 0 twice, and 2 for 1 once.
Scores with_labels(size_t labels) {
  std::vector<std::string> names;
  for (size_t i = 0; i < labels; ++i) names.push_back(fmt::format("l{}", i));
  const Targets targets = {.outputs = static_cast<int64_t>(labels), .classes = {1, 1, 2, 0}};
  std::vector<float> outputs(4 * labels, 0.0f);
  outputs[0] = outputs[labels] = outputs[2 * labels + 1] = outputs[3 * labels] = 1;
  return score(targets, names, outputs, {});
}

TEST(Scores, TheMatrixOfManyClassesIsItsLargestErrors) {
  const Json few = json_of(with_labels(64));
  EXPECT_EQ(few.at("confusion").size(), 64u);
  EXPECT_EQ(few.at("confusion")[1][0], 2);
  EXPECT_FALSE(few.contains("confusion_largest"));
  const Json many = json_of(with_labels(65));
  EXPECT_FALSE(many.contains("confusion"));
  EXPECT_EQ(many.at("confusion_largest"),
            Json::parse(R"([{"label": "l1", "predicted": "l0", "examples": 2},
                            {"label": "l2", "predicted": "l1", "examples": 1}])"));
  EXPECT_THAT(text_of(with_labels(65)), HasSubstr("The largest entries of the confusion matrix of "
                                                  "65 classes are in the JSON"));
}

TEST(Scores, TablesShowMetricsLabelsAndConfusion) {
  const Targets targets = {.outputs = 2, .classes = {0, 0, 1, 1}};
  const std::string text =
      text_of(score(targets, {"ham", "spam"}, std::vector<float>{1, 0, 1, 0, 1, 0, 0, 1}, {}));
  EXPECT_THAT(text, HasSubstr("accuracy     0.7500\n"));
  EXPECT_THAT(text, HasSubstr("label  precision  recall      F1  examples\n"
                              "-----  ---------  ------  ------  --------\n"
                              "ham       0.6667  1.0000  0.8000         2\n"));
  EXPECT_THAT(text, HasSubstr("true \\ predicted  ham  spam\n"
                              "----------------  ---  ----\n"
                              "ham                 2     0\n"
                              "spam                1     1\n"));
}

}  // namespace
}  // namespace onebit::classify
