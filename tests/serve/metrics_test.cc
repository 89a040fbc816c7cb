#include "onebit/program/serve/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <sstream>

namespace onebit::serve {
namespace {

// The samples of a text in Prometheus's format, by name and labels. Every line must be one.
std::map<std::string, double> samples_of(const std::string& text) {
  const auto is_comment =
      testing::MatchesRegex("# (HELP [a-z_]+ [^ ].*|TYPE [a-z_]+ (counter|gauge|histogram))");
  const auto is_sample =
      testing::MatchesRegex(R"([a-z_]+(\{[a-z]+="[^"\\]*"(,[a-z]+="[^"\\]*")*\})? [-+.0-9e]+)");
  std::map<std::string, double> samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, testing::AnyOf(is_comment, is_sample));
    if (line.starts_with('#')) continue;
    const size_t blank = line.rfind(' ');
    EXPECT_TRUE(samples.emplace(line.substr(0, blank), std::stod(line.substr(blank + 1))).second)
        << "twice: " << line;
  }
  EXPECT_TRUE(text.ends_with('\n'));
  return samples;
}

TEST(Histogram, CountsAreCumulative) {
  constexpr std::array<double, 3> kBounds = {1, 2, 4};
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 3.0, 5.0}) histogram.add(value);
  std::string text;
  histogram.append_to(text, "x");
  EXPECT_EQ(text,
            "x_bucket{le=\"1\"} 2\nx_bucket{le=\"2\"} 2\nx_bucket{le=\"4\"} 3\n"
            "x_bucket{le=\"+Inf\"} 4\nx_sum 9.5\nx_count 4\n");
}

TEST(Metrics, AreSamplesFromTheBeginning) {
  const std::map<std::string, double> samples = samples_of(Metrics().text(0));
  EXPECT_EQ(samples.at("te_inputs"), 0);
  EXPECT_EQ(samples.at("te_request_duration_count"), 0);
  EXPECT_EQ(samples.at("te_queue_size"), 0);
}

TEST(Metrics, AddUp) {
  Metrics metrics;
  const RequestRecord answered = {.path = "/embed",
                                  .error = "",
                                  .inputs = 3,
                                  .tokens = 50,
                                  .seconds = 0.5,
                                  .tokenization_seconds = 0.125,
                                  .queue_seconds = 0.25,
                                  .inference_seconds = 3};
  metrics.count_request(answered);
  metrics.count_request(answered);
  metrics.count_request({.path = "/embed", .error = "Validation", .inputs = 7, .tokens = 7});
  metrics.count_request({.path = "/rerank", .error = "Backend"});
  metrics.count_batch(6, 100);
  const std::string text = metrics.text(4);
  const std::map<std::string, double> samples = samples_of(text);
  EXPECT_EQ(samples.at("te_request_count{endpoint=\"/embed\"}"), 3);
  EXPECT_EQ(samples.at("te_request_success{endpoint=\"/embed\"}"), 2);
  EXPECT_EQ(samples.at("te_request_failure{endpoint=\"/embed\",err=\"Validation\"}"), 1);
  EXPECT_EQ(samples.at("te_request_count{endpoint=\"/rerank\"}"), 1);
  EXPECT_EQ(samples.count("te_request_success{endpoint=\"/rerank\"}"), 0u);
  EXPECT_EQ(samples.at("te_request_failure{endpoint=\"/rerank\",err=\"Backend\"}"), 1);
  EXPECT_EQ(samples.at("te_inputs"), 6);
  EXPECT_EQ(samples.at("te_tokens"), 100);
  EXPECT_EQ(samples.at("te_queue_size"), 4);
  EXPECT_EQ(samples.at("te_request_duration_count"), 2);
  EXPECT_EQ(samples.at("te_request_duration_sum"), 1);
  EXPECT_EQ(samples.at("te_request_tokenization_duration_sum"), 0.25);
  EXPECT_EQ(samples.at("te_request_queue_duration_sum"), 0.5);
  EXPECT_EQ(samples.at("te_request_inference_duration_sum"), 6);
  EXPECT_EQ(samples.at("te_batch_next_tokens_bucket{le=\"128\"}"), 1);
  EXPECT_EQ(samples.at("te_batch_next_tokens_bucket{le=\"64\"}"), 0);
  EXPECT_EQ(samples.at("te_batch_next_size_sum"), 6);
}

}  // namespace
}  // namespace onebit::serve
