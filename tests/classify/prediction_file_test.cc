#include "onebit/apps/classify/prediction_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/classify/text_files.h"

namespace onebit::classify {
namespace {

using ::testing::HasSubstr;

using Options = PredictionFile::Options;

std::string written(const Options& options, const std::vector<std::vector<float>>& outputs) {
  const TextFiles files;
  PredictionFile file(files.path("p"), options);
  for (const auto& one : outputs) file.add(one);
  EXPECT_FALSE(std::filesystem::exists(files.path("p")));
  file.finish();
  EXPECT_EQ(file.count(), static_cast<int64_t>(outputs.size()));
  return read_file(files.path("p"));
}

const std::vector<std::string> kLabels = {"ham", "spam"};

TEST(PredictionFile, FormatByEnding) {
  EXPECT_EQ(prediction_format_of("a/b.tsv"), PredictionFormat::kTsv);
  EXPECT_EQ(prediction_format_of("b.jsonl"), PredictionFormat::kJsonLines);
  EXPECT_THAT(message_of([] { prediction_format_of("b.csv"); }), HasSubstr(".tsv or .jsonl"));
}

TEST(PredictionFile, OneClass) {
  EXPECT_EQ(written({.labels = kLabels}, {{0, 0}, {-1, 3}}),
            "prediction\tprobability:ham\tprobability:spam\n"
            "ham\t0.500000\t0.500000\n"
            "spam\t0.017986\t0.982014\n");
  EXPECT_EQ(written({.format = PredictionFormat::kJsonLines, .labels = kLabels}, {{-1, 3}}),
            "{\"label\":\"spam\",\"probability\":0.982014,"
            "\"probabilities\":{\"ham\":0.017986,\"spam\":0.982014}}\n");
}

TEST(PredictionFile, ManyLabels) {
  Options options = {.problem = Problem::kMultiLabel, .labels = kLabels};
  EXPECT_EQ(written(options, {{1, 1}, {-1, -1}}),
            "prediction\tprobability:ham\tprobability:spam\n"
            "ham,spam\t0.731059\t0.731059\n"
            "\t0.268941\t0.268941\n");
  options.format = PredictionFormat::kJsonLines;
  options.threshold = 0.2;
  EXPECT_EQ(written(options, {{-1, -9}}),
            "{\"labels\":[\"ham\"],\"probabilities\":{\"ham\":0.268941,\"spam\":0.000123}}\n");
}

// What a CrossEncoder says of its outputs goes before what the problem says.
TEST(PredictionFile, OfACrossEncoder) {
  Options options = {
      .problem = Problem::kRegression, .labels = {"LABEL_0"}, .activation = Activation::kSigmoid};
  EXPECT_EQ(written(options, {{0}, {-1}}), "prediction\n0.500000\n0.268941\n");
  options.format = PredictionFormat::kJsonLines;
  EXPECT_EQ(written(options, {{1}}), "{\"value\":0.731059}\n");
  options = {.labels = kLabels, .activation = Activation::kSigmoid};
  EXPECT_EQ(written(options, {{1, -1}}),
            "prediction\tprobability:ham\tprobability:spam\nham\t0.731059\t0.268941\n");
  options = {.labels = kLabels, .has_scores = true};
  EXPECT_EQ(written(options, {{-1, 3}}),
            "prediction\tprobability:ham\tprobability:spam\tscore:ham\tscore:spam\n"
            "spam\t0.017986\t0.982014\t-1.000000\t3.000000\n");
  options.format = PredictionFormat::kJsonLines;
  EXPECT_EQ(written(options, {{-1, 3}}),
            "{\"label\":\"spam\",\"probability\":0.982014,"
            "\"probabilities\":{\"ham\":0.017986,\"spam\":0.982014},"
            "\"scores\":{\"ham\":-1.0,\"spam\":3.0}}\n");
}

TEST(PredictionFile, Numbers) {
  Options options = {.problem = Problem::kRegression, .labels = {"LABEL_0"}};
  EXPECT_EQ(written(options, {{2.5f}, {-7}}), "prediction\n2.500000\n-7.000000\n");
  options.format = PredictionFormat::kJsonLines;
  EXPECT_EQ(written(options, {{2.5f}}), "{\"value\":2.5}\n");
}

TEST(PredictionFile, Submissions) {
  EXPECT_EQ(written({.format = PredictionFormat::kGlue, .labels = {"entailment", "not_entailment"}},
                    {{1, 0}, {0, 1}}),
            "index\tprediction\n0\tentailment\n1\tnot_entailment\n");
  EXPECT_EQ(written({.format = PredictionFormat::kGlue,
                     .problem = Problem::kRegression,
                     .labels = {"LABEL_0"}},
                    {{2.3456f}, {5.2f}, {-0.1f}}),
            "index\tprediction\n0\t2.346\n1\t5.000\n2\t0.000\n");
}

TEST(PredictionFile, LabelsThatATsvCannotContainAreRefused) {
  const TextFiles files;
  const auto error = [&](const Options& options) {
    return message_of([&] { PredictionFile file(files.path("p"), options); });
  };
  EXPECT_THAT(error({.labels = {"a\tb", "c"}}),
              HasSubstr("label \"a\\tb\" contains a tab or a line end, which a field of TSV"));
  EXPECT_THAT(error({.format = PredictionFormat::kGlue, .labels = {"a", "c\nd"}}),
              HasSubstr("write predictions as .jsonl"));
  EXPECT_THAT(error({.problem = Problem::kMultiLabel, .labels = {"a", "b,c"}}),
              HasSubstr("label \"b,c\" contains \",\""));
  EXPECT_EQ(error({.labels = {"a", "b,c"}}), "(no error)");
  EXPECT_EQ(error({.format = PredictionFormat::kJsonLines, .labels = {"a\tb", "c"}}), "(no error)");
}

TEST(PredictionFile, IsNotThereUntilItIsFinished) {
  const TextFiles files;
  files.write("p.tsv", "before");
  { PredictionFile(files.path("p.tsv"), {.labels = kLabels}).add(std::vector<float>{1, 0}); }
  EXPECT_EQ(read_file(files.path("p.tsv")), "before");
  EXPECT_FALSE(std::filesystem::exists(files.path("p.tsv.partial")));
}

}  // namespace
}  // namespace onebit::classify
