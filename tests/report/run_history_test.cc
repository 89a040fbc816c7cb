#include "onebit/report/run_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void put(const Path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST(ReadRun, TakesEveryNumberPhaseAndTable) {
  TemporaryFolder folder;
  put(folder / "metrics.jsonl",
      R"({"step":0,"start":{"expected_seconds":{"dense":2.5,"compressed":1.5},"time":"2026-01-02T03:04:05Z","rows":[["model","2 layers"]]}}
{"step":0,"samples":0,"held_out":{"mlm_loss":9.5,"samples":500,"books":{"mlm_loss":2.5}}}
{"step":1,"loss":7.5,"phase":"warmup","seconds":{"step":2.25}}
{"step":2,"loss":null,"phase":"compressed","seconds":{"step":1.25}}
{"step":2,"end":{"time":"2026-01-02T03:05:05Z","rows":[["steps","2"],["samples","64"]]}}
)");
  put(folder / "recipe.json", "{\"run\": {}}\n");
  put(folder / "recipe.resolved.json", R"({"run":{"steps":3}})");
  const RunHistory run = read_run(folder.path());
  EXPECT_EQ(run.name, folder.path().filename().string());
  EXPECT_EQ(run.last_step, 2);
  EXPECT_EQ(run.wanted_steps, 3);
  EXPECT_EQ(run.expected_compressed_seconds, 1.5);
  ASSERT_EQ(run.phases.size(), 2u);
  EXPECT_EQ(run.phases[1].name, "compressed");
  EXPECT_EQ(run.phases[1].first_step, 2);
  const Series& loss = run.training.at("loss");
  EXPECT_EQ(loss[0].value, 7.5);
  EXPECT_TRUE(std::isnan(loss[1].value));
  EXPECT_EQ(run.training.at("seconds.step")[1].value, 1.25);
  EXPECT_EQ(run.evaluations.at("held_out.mlm_loss")[0].value, 9.5);
  EXPECT_EQ(run.evaluations.at("held_out.books.mlm_loss")[0].value, 2.5);
  EXPECT_EQ(data_of("held_out.books.mlm_loss"), "books");
  EXPECT_EQ(data_of("held_out.mlm_loss"), "");
  ASSERT_EQ(run.starts.size(), 1u);
  EXPECT_EQ(run.starts[0].time, "2026-01-02T03:04:05Z");
  EXPECT_THAT(run.ends.at(0).rows,
              ElementsAre(std::pair("steps", "2"), std::pair("samples", "64")));
  EXPECT_EQ(run.recipe, "{\"run\": {}}\n");
  EXPECT_TRUE(run.damage.empty());
}

TEST(ReadRun, LeavesDamagedLinesOutAndNamesThem) {
  TemporaryFolder folder;
  put(folder / "metrics.jsonl",
      "{\"step\":1,\"loss\":7,\"phase\":\"dense\"}\nnot json\n[1]\n{\"phase\":\"dense\"}\n"
      "{\"step\":5,\"start\":{}}\n{\"step\":2,\"loss\":6,\"phase\":\"dense\"}\n{\"step\":3,\"lo");
  const RunHistory run = read_run(folder.path());
  EXPECT_EQ(run.training.at("loss").size(), 2u);
  EXPECT_THAT(run.damage, ElementsAre("metrics.jsonl, line 2: not a metrics object",
                                      "metrics.jsonl, line 3: not a metrics object",
                                      "metrics.jsonl, line 4: not a metrics object",
                                      "metrics.jsonl, line 5: not a metrics object",
                                      "metrics.jsonl, line 7: cut short, as by a kill"));
}

TEST(ReadRun, AnEmptyRunHasNoSteps) {
  TemporaryFolder folder;
  put(folder / "metrics.jsonl", "");
  const RunHistory run = read_run(folder.path());
  EXPECT_EQ(run.last_step, 0);
  EXPECT_FALSE(run.wanted_steps);
}

TEST(ReadRun, NamesWhatIsNoRun) {
  TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { read_run(folder / "none"); }), HasSubstr("not a folder"));
  EXPECT_THAT(message_of([&] { read_run(folder.path()); }), HasSubstr("no metrics.jsonl here"));
}

}  // namespace
}  // namespace onebit::report
