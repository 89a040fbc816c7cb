#include "onebit/ground/metrics/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace onebit::metrics {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A run of 1,000 steps without problems, frozen after 300.
RunHistory sound_run() {
  RunHistory run;
  run.name = "sound";
  run.last_step = 1000;
  run.wanted_steps = 1000;
  run.phases = {{"warmup", 1, 300}, {"compressed", 301, 1000}};
  run.starts.resize(1);
  run.expected_dense_seconds = 1;
  run.expected_compressed_seconds = 0.5;
  for (int step = 1; step <= 1000; ++step) {
    const bool compressed = step > 300;
    const auto add = [&](const char* key, double value) {
      run.training[key].push_back({double(step), value});
    };
    add("loss", 2 + 8 * std::exp(-step / 300.0));
    add("seconds.step", compressed ? 0.5 : 1);
    add("seconds.wait", 0.01);
    add("seconds.data", 0.001);
    add("samples_per_second", compressed ? 64 : 32);
    add("skipped_steps", 2);
    add("clip_coefficient", 1);
    if (compressed) add("residual_over_sent", 1.2);
  }
  run.evaluations["held_out.mlm_loss"] = {{0, 9}, {500, 4}, {1000, 3}};
  return run;
}

testing::AssertionResult warns(const std::function<void(RunHistory&)>& change,
                               const std::string& part) {
  RunHistory run = sound_run();
  change(run);
  const std::vector<Finding> findings = find_problems(run);
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kWarning && finding.text.find(part) != std::string::npos) {
      return testing::AssertionSuccess();
    }
  }
  testing::AssertionResult result = testing::AssertionFailure();
  for (const Finding& finding : findings) result << "\n  " << finding.text;
  return result;
}

TEST(FindProblems, ASoundRunHasNone) {
  EXPECT_THAT(find_problems(sound_run()), IsEmpty());
}

TEST(FindProblems, NamesEachWithItsFigure) {
  EXPECT_TRUE(warns([](RunHistory& run) { run.wanted_steps = 1200; }, "step 1000 of 1200"));
  EXPECT_TRUE(warns([](RunHistory& run) { run = {}; }, "No training step"));
  EXPECT_TRUE(warns([](RunHistory& run) { run.damage = {"metrics.jsonl, line 7: cut short"}; },
                    "line 7: cut short"));
  EXPECT_TRUE(warns([](RunHistory& run) { run.training["loss"][411].value = NAN; },
                    "not a finite number from step 412 on"));
  EXPECT_TRUE(warns(
      [](RunHistory& run) {
        for (size_t i = 900; i < 1000; ++i) run.training["loss"][i].value = 5;
      },
      "The loss rose from"));
  EXPECT_TRUE(warns(
      [](RunHistory& run) {
        run.evaluations["held_out.mlm_loss"].push_back({1000, 4.5});
      },
      "held_out.mlm_loss was best at step 1000 (3.0000) and ends at 4.5000"));
  const auto skip = [](RunHistory& run) { run.training["skipped_steps"].back().value = 30; };
  EXPECT_TRUE(warns(skip, "30 steps were skipped"));
  EXPECT_TRUE(warns(skip, "infinite or not a number"));
  EXPECT_TRUE(warns(
      [&](RunHistory& run) {
        skip(run);
        run.training["loss_scale"] = {{1, 65536}, {2, 32768}};
      },
      "overflowed in fp16"));
  EXPECT_TRUE(warns(
      [](RunHistory& run) {
        for (Point& point : run.training["seconds.wait"]) point.value = 0.2;
      },
      "waiting for the exchange"));
  EXPECT_TRUE(warns(
      [](RunHistory& run) {
        for (Point& point : run.training["seconds.data"]) point.value = 0.1;
      },
      "waiting for batches"));
  EXPECT_TRUE(warns([](RunHistory& run) { run.expected_compressed_seconds = 0.3; },
                    "A compressed step took 500 ms, 67 % more than the 300 ms"));
  EXPECT_TRUE(warns(
      [](RunHistory& run) {
        for (size_t i = 900; i < 1000; ++i) run.training["samples_per_second"][i].value = 30;
      },
      "Throughput fell from 64 to 30 samples/s in the compressed phase"));
  EXPECT_TRUE(warns(
      [](RunHistory& run) {
        Series& residual = run.training["residual_over_sent"];
        for (size_t i = residual.size() / 2; i < residual.size(); ++i) residual[i].value = 9;
      },
      "error feedback falls behind"));
}

// A run that keeps its best model by F1 has lost nothing when the loss on held-out data rises.
TEST(FindProblems, JudgesARunByTheMetricThatItIsKeptBy) {
  RunHistory run = sound_run();
  run.kept_best = {.metric = "f1"};
  run.evaluations = {{"squad.loss", {{300, 1}, {600, 2}, {1000, 3}}},
                     {"squad.f1", {{300, 80}, {600, 81}, {1000, 80.5}}}};
  EXPECT_THAT(find_problems(run), IsEmpty());
  run.evaluations["squad.f1"].back().value = 70;
  const std::vector<Finding> findings = find_problems(run);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::kNote);
  EXPECT_THAT(findings[0].text,
              HasSubstr("squad.f1 was best at step 600 (81.0000) and ends at 70.0000. The run's "
                        "folder contains the best model"));
  run.kept_best = {.metric = "loss", .smaller_is_better = true};
  EXPECT_THAT(find_problems(run), Contains(Field(&Finding::text, HasSubstr("squad.loss was best at "
                                                                           "step 300"))));
}

TEST(FindProblems, NotesWhatWasForgotten) {
  RunHistory run = sound_run();
  run.evaluations["held_out.books.mlm_loss"] = {{0, 2}, {500, 2.25}, {1000, 2.5}};
  run.evaluations["held_out.news.mlm_loss"] = {{0, 2}, {500, 1.5}, {1000, 2.01}};
  const std::vector<Finding> findings = find_problems(run);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::kNote);
  EXPECT_THAT(findings[0].text, HasSubstr("The model has forgotten some of books: its held-out MLM "
                                          "loss rose from 2.0000 to 2.5000"));
}

TEST(FindProblems, NotesResumesAndClipping) {
  RunHistory run = sound_run();
  run.starts.resize(3);
  run.starts[1].step = 400;
  run.starts[2].step = 700;
  for (Point& point : run.training["clip_coefficient"]) point.value = 0.5;
  const std::vector<Finding> findings = find_problems(run);
  EXPECT_THAT(findings, Contains(Field(&Finding::text, HasSubstr("2 times: from step 400, 700"))));
  EXPECT_THAT(findings, Contains(Field(&Finding::text, HasSubstr("clipped in 100 %"))));
}

TEST(MedianStepSeconds, IsOfOnePhase) {
  EXPECT_EQ(median_step_seconds(sound_run(), false), 1);
  EXPECT_EQ(median_step_seconds(sound_run(), true), 0.5);
  EXPECT_EQ(median_step_seconds({}, true), 0);
}

}  // namespace
}  // namespace onebit::metrics
