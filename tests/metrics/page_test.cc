#include "onebit/ground/metrics/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/error.h"
#include "tests/base/message_of.h"

namespace onebit::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunHistory small_run(const std::string& name) {
  RunHistory run;
  run.name = name;
  run.folder = "runs/" + name;
  run.last_step = 3;
  run.wanted_steps = 3;
  run.phases = {{"dense", 1, 3}};
  for (const char* key :
       {"loss", "metrics.mlm_loss", "learning_rate", "seconds.step", "wire_bytes"}) {
    run.training[key] = {{1, 3}, {2, 2}, {3, 1}};
  }
  run.evaluations["held_out.mlm_loss"] = {{3, 2.5}};
  run.starts = {{.step = 0, .time = "2026-01-02T03:04:05Z", .rows = {{"model", "<2 layers>"}}}};
  run.recipe = "{\"run\": {\"steps\": 3}}";
  return run;
}

TEST(HtmlPage, ShowsARunAndNeedsNothingElse) {
  const std::string page = html_page({small_run("a&b")});
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("<h1>a&amp;b</h1>"));
  EXPECT_THAT(page, HasSubstr("width=device-width"));
  EXPECT_THAT(page, HasSubstr("<h3>MLM loss</h3>"));
  EXPECT_THAT(page, HasSubstr("<td>&lt;2 layers&gt;</td>"));
  EXPECT_THAT(page, HasSubstr("<th>MLM loss, held out</th><td>2.5000</td>"));
  EXPECT_THAT(page, HasSubstr("{&quot;run&quot;"));
  EXPECT_THAT(page, HasSubstr("No problems found"));
  for (const char* outside : {"http:", "https:", "<script", "<link", "src=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

TEST(HtmlPage, ComparesSeveralRuns) {
  RunHistory other = small_run("second");
  other.evaluations["held_out.mlm_loss"] = {{3, 2.25}};
  other.evaluations["held_out.nsp_loss"] = {{3, 0.5}};
  const std::string page = html_page({small_run("first"), other});
  EXPECT_THAT(page, HasSubstr("<th>first</th><th>second</th>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"n\">2.5000</td><td class=\"n\">2.2500</td>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"n\">-</td><td class=\"n\">0.5000</td>"));
  EXPECT_THAT(page, HasSubstr("first, training"));
  EXPECT_THAT(page, HasSubstr("second, held out"));
}

TEST(HtmlPage, DistinguishesHeldOutSets) {
  RunHistory run = small_run("adapted");
  run.evaluations["held_out.books.mlm_loss"] = {{3, 1.25}};
  const std::string page = html_page({run});
  EXPECT_THAT(page, HasSubstr("held out, books"));
  EXPECT_THAT(page, HasSubstr("<th>MLM loss, held out, books</th><td>1.2500</td>"));
}

TEST(HtmlPage, DrawsWhatATaskMeasuresUnderAnyName) {
  RunHistory run = small_run("run");
  run.training["clip_coefficient"] = run.training["sent_norm"] = {{1, 1}, {2, 1}, {3, 1}};
  run.training["metrics.phase_error"] = run.training["metrics.loss_scale"] = {{1, 3}, {2, 2}};
  run.evaluations["dev.seconds"] = {{3, 12}};
  const std::string page = html_page({run});
  for (const char* title : {"MLM loss", "Phase error", "Loss scale"}) {
    EXPECT_THAT(page, HasSubstr(fmt::format("<h3>{}</h3>", title)));
  }
  for (const char* title : {"Clip coefficient", "Sent norm", "Seconds"}) {
    EXPECT_THAT(page, Not(HasSubstr(fmt::format("<h3>{}</h3>", title))));
  }
}

TEST(HtmlPage, ReportsThatAnEmptyRunIsEmpty) {
  RunHistory run;
  run.name = "empty";
  const std::string page = html_page({run});
  EXPECT_THAT(page, HasSubstr("No training step was recorded"));
  EXPECT_THAT(page, HasSubstr("nothing to draw yet"));
  EXPECT_THAT(message_of([] { html_page({}); }), HasSubstr("at least one run"));
}

}  // namespace
}  // namespace onebit::metrics
