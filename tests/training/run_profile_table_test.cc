#include "onebit/training/training/run_profile.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/message_of.h"

namespace onebit::training {
namespace {

using testing::HasSubstr;
using testing::Not;

// A run whose operations sleep. A busy machine makes any of them longer.
class SleepingRun {
 public:
  SleepingRun() { context_.set_profile_track(&profile_.track(kMainTrack)); }

  void operation(const char* name, const Work& work, int milliseconds) {
    const OperationSpan span(context_, name, [&] { return work; });
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  }
  void step(int64_t number) {
    const StepSpan span(context_, number);
    const PhaseSpan phase(context_, "encoder forward");
    operation("matrix_product", {.flops = 1e6, .use = "forward", .in = 768, .out = 3072}, 8);
    operation("layer_norm", {.bytes = 1e6}, 3);
    operation("fill", {}, 0);
  }
  void run(int64_t steps) {
    profile_.start({.first_counted_step = 1, .first_traced_step = 1, .traced_steps = 1});
    for (int64_t number = 1; number <= steps; ++number) step(number);
    {
      const PhaseSpan phase(context_, "evaluation");
      operation("layer_norm", {}, 0);
    }
    ProfileTrack* const batches = &profile_.track("batches");
    { const PhaseSpan phase(batches, "build batch"); }
    {
      const PhaseSpan around(batches, "reading");
      const PhaseSpan phase(batches, "build batch");
    }
    profile_.stop();
  }

  ProfileTable table(const ProfileCeilings& ceilings) const {
    return {profile_, context_, ceilings};
  }

 private:
  Profile profile_;
  Context context_ = Context::cpu(1);
};

const ProfileRow& row_of(const ProfileTable& table, const std::string& operation) {
  const auto has_name = [&](const ProfileRow& row) { return row.operation == operation; };
  return *std::find_if(table.rows().begin(), table.rows().end(), has_name);
}

constexpr const char* kProduct = "matrix_product 768 -> 3072, forward";

// A busy machine may interrupt the process between the end of the last row and the end of the step.
TEST(ProfileTable, RowsSumToTheStep) {
  double largest = 0;
  for (int i = 0; i < 50 && largest < 0.97; ++i) {
    SleepingRun sleeping;
    sleeping.run(2);
    const ProfileTable table = sleeping.table({.flops = 1e12, .bytes = 1e12});
    double sum = 0;
    for (const ProfileRow& row : table.rows()) sum += row.seconds;
    largest = std::max(largest, sum / table.step_seconds());
  }
  EXPECT_GE(largest, 0.97);
}

TEST(ProfileTable, RowsAreInOrderOfTimeAndNoLongerThanTheStep) {
  SleepingRun sleeping;
  sleeping.run(2);
  const ProfileTable table = sleeping.table({.flops = 1e12, .bytes = 1e12});
  double sum = 0, before = 1e30;
  for (const ProfileRow& row : table.rows()) {
    sum += row.seconds;
    EXPECT_LE(row.seconds, before);
    before = row.seconds;
  }
  EXPECT_GE(table.step_seconds(), 0.011);
  EXPECT_LE(sum, 1.0001 * table.step_seconds());
  const ProfileRow& product = row_of(table, kProduct);
  EXPECT_EQ(product.phase, "encoder forward");
  EXPECT_EQ(product.calls, 1);
  EXPECT_EQ(product.flops, 1e6);
  EXPECT_EQ(row_of(table, "layer_norm").calls, 1);
}

TEST(ProfileTable, ShowsRatesBesideTheCeilings) {
  SleepingRun sleeping;
  sleeping.run(1);
  const ProfileTable table = sleeping.table({.flops = 1e9, .bytes = 1e9});
  const ProfileRow& product = row_of(table, kProduct);
  const std::string rate = fmt::format("{:.1f} GFLOP/s", 1e-3 / product.seconds);
  const std::string share = fmt::format("{:.0f} %", 100 * 1e-3 / product.seconds);
  EXPECT_THAT(table.text(), HasSubstr(rate + "  "));
  EXPECT_THAT(table.markdown(), HasSubstr(" | " + rate + " | " + share + " |"));
  EXPECT_THAT(table.text(), HasSubstr("1.0 GB/s of a copy"));
}

TEST(ProfileTable, WithoutCeilingsTimesAreLaunches) {
  SleepingRun sleeping;
  sleeping.run(1);
  const ProfileTable table = sleeping.table({});
  EXPECT_THAT(table.text(), Not(HasSubstr("GFLOP/s")));
  EXPECT_THAT(table.text(), HasSubstr("operations are launched"));
}

TEST(ProfileTable, ShowsWhatRunsBesideAndBetweenTheSteps) {
  const std::vector<std::string> lines = {"# Profile\n\n3 steps of ",
                                          "## Operations of a step",
                                          "| (outside operations) |",
                                          "| sum |",
                                          "| 1 smaller ones |",
                                          "## Phases of a step\n\n| phase | ms |",
                                          "| encoder forward | ",
                                          "## Other threads, per step",
                                          "| batches |  | build batch | 0.7 |",
                                          "## Between the steps",
                                          "| evaluation | 1 | 0.0"};
  std::string markdown;
  const auto is_shown = [&](const std::string& line) {
    return markdown.find(line) != std::string::npos;
  };
  // What takes no time takes some where other work interrupts it.
  for (int tried = 0; tried < 100; ++tried) {
    SleepingRun sleeping;
    sleeping.run(3);
    markdown = sleeping.table({.flops = 1e9, .bytes = 1e9}).markdown();
    if (std::all_of(lines.begin(), lines.end(), is_shown)) break;
  }
  for (const std::string& line : lines) EXPECT_THAT(markdown, HasSubstr(line));
}

TEST(ProfileTable, NeedsAStep) {
  EXPECT_THAT(message_of([] { SleepingRun().table({}); }), HasSubstr("no step"));
}

}  // namespace
}  // namespace onebit::training
