#include "onebit/ground/metrics/run_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void put(const Path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST(ReadRun, TakesEveryNumberPhaseAndTable) {
  TemporaryFolder folder;
  put(folder / "metrics.jsonl",
      R"({"kind":"start","step":0,"expected_seconds":{"dense":2.5,"compressed":1.5},"time":"2026-01-02T03:04:05Z","rows":[["model","2 layers"]]}
{"kind":"evaluation","step":0,"samples":0,"held_out":{"mlm_loss":9.5,"samples":500,"books":{"mlm_loss":2.5}}}
{"kind":"step","step":1,"loss":7.5,"metrics":{"loss":5.5},"phase":"warmup","seconds":{"step":2.25}}
{"kind":"step","step":2,"loss":null,"metrics":{},"phase":"compressed","seconds":{"step":1.25}}
{"kind":"end","step":2,"time":"2026-01-02T03:05:05Z","rows":[["steps","2"],["samples","64"]]}
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
  EXPECT_EQ(run.training.at("metrics.loss").at(0).value, 5.5);
  EXPECT_EQ(run.training.at("seconds.step")[1].value, 1.25);
  EXPECT_EQ(run.evaluations.at("held_out.mlm_loss")[0].value, 9.5);
  EXPECT_EQ(run.evaluations.at("held_out.books.mlm_loss")[0].value, 2.5);
  EXPECT_FALSE(run.evaluations.contains("held_out.samples"));
  EXPECT_EQ(data_of("held_out.books.mlm_loss"), "books");
  EXPECT_EQ(data_of("held_out.mlm_loss"), "");
  ASSERT_EQ(run.starts.size(), 1u);
  EXPECT_EQ(run.starts[0].time, "2026-01-02T03:04:05Z");
  EXPECT_THAT(run.ends.at(0).rows,
              ElementsAre(std::pair("steps", "2"), std::pair("samples", "64")));
  EXPECT_EQ(run.recipe, "{\"run\": {}}\n");
  EXPECT_TRUE(run.damage.empty());
}

TEST(ReadRun, KnowsHowTheRunKeepsItsBestModel) {
  TemporaryFolder folder;
  put(folder / "metrics.jsonl",
      R"({"kind":"start","step":0,"kept_by":{"metric":"f1","smaller_is_better":false},"time":"2026-01-02T03:04:05Z","rows":[]}
)");
  ASSERT_TRUE(read_run(folder.path()).kept_best);
  EXPECT_EQ(read_run(folder.path()).kept_best->metric, "f1");
  EXPECT_FALSE(read_run(folder.path()).kept_best->smaller_is_better);
  put(folder / "metrics.jsonl",
      R"({"kind":"start","step":0,"time":"2026-01-02T03:04:05Z","rows":[]}
)");
  EXPECT_FALSE(read_run(folder.path()).kept_best);
}

TEST(ReadRun, LeavesDamagedLinesOutAndNamesThem) {
  TemporaryFolder folder;
  put(folder / "metrics.jsonl",
      R"({"kind":"step","step":1,"loss":7,"phase":"dense"}
not json
[1]
{"kind":"step","phase":"dense"}
{"kind":"start","step":5}
{"step":2,"loss":6.5,"phase":"dense"}
{"kind":"step","step":2,"loss":6,"phase":"dense"}
{"kind":"jump","step":3}
{"kind":"step","step":3,"lo)");
  const RunHistory run = read_run(folder.path());
  EXPECT_EQ(run.training.at("loss").size(), 2u);
  EXPECT_THAT(run.damage,
              ElementsAre("metrics.jsonl, lines 2 to 5: not a metrics object",
                          "metrics.jsonl, line 6: has no \"kind\" that this onebit knows",
                          "metrics.jsonl, line 8: has no \"kind\" that this onebit knows",
                          "metrics.jsonl, line 9: cut short, as by a kill"));
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

// Nobody writes into the pipe: opening it would wait for ever.
TEST(ReadRun, RefusesPipes) {
  for (const char* name : {"metrics.jsonl", "recipe.json", "recipe.resolved.json"}) {
    TemporaryFolder folder;
    if (std::string(name) != "metrics.jsonl") put(folder / "metrics.jsonl", "");
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
    EXPECT_THAT(message_of([&] { read_run(folder.path()); }),
                HasSubstr(std::string(name) + ": is a pipe"));
  }
}

}  // namespace
}  // namespace onebit::metrics
