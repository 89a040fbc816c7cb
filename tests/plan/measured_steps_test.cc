// The steps that docs/network.md has measured, planned from a measurement of the same processor
// (docs/plan.md, "Checked").
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "onebit/program/plan/run_plan.h"

namespace onebit::plan {
namespace {

struct MeasuredStep {
  const char* link;
  double bytes_per_second;
  double one_bit, sixteen_bits;  // seconds
};

// What the links carried: "none" as start tables had measured it.
constexpr MeasuredStep kMeasured[] = {{"none", 500e6 / kLinkShare, 4.05, 4.31},
                                      {"1 Gb/s", 125e6, 4.14, 4.83},
                                      {"200 Mb/s", 25e6, 4.11, 11.0},
                                      {"100 Mb/s", 12.5e6, 4.12, 20.2}};

// The recipe of bench/network.py.
pretrain::PretrainingConfig bench_config() {
  const Json recipe = parse_json(R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4,
      "communication_data_type": "bf16",
      "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-4, "freeze_step": 2}},
      "model": {"preset": "bert-base"},
      "data": {"sequence_length": 128, "short_sequence_probability": 0,
               "max_predictions_per_sequence": 19},
      "run": {"steps": 8}})",
                                 "bench.json");
  return pretrain::parse_pretraining_recipe({.values = recipe, .place = "bench.json"},
                                            std::nullopt);
}

void expect_within(double planned, double measured, const std::string& what) {
  fmt::print("{}: planned {:.2f} s, measured {:.2f} s, {:+.0f} %\n", what, planned, measured,
             100 * (planned / measured - 1));
  EXPECT_NEAR(planned / measured, 1, 0.1) << what;
}

TEST(MeasuredSteps, ArePlannedWithinTenPercent) {
  Context context = Context::cpu(1);
  const pretrain::PretrainingConfig config = bench_config();
  const costs::MachineCosts machine =
      costs::read_machine_costs(ONEBIT_SOURCE_DIR "/tests/plan/zen3_one_core.json");
  for (const MeasuredStep& measured : kMeasured) {
    const RunPlan plan = make_plan(
        context, config, machine,
        {.cluster = {.hosts = 2, .bandwidth = measured.bytes_per_second, .latency = 50e-6}});
    const PlannedRun& one_bit = plan.asked.runs[2];
    ASSERT_TRUE(plan.choices[2].of_recipe);
    expect_within(one_bit.compressed.all, measured.one_bit,
                  std::string(measured.link) + ", one bit");
    expect_within(one_bit.dense.all, measured.sixteen_bits,
                  std::string(measured.link) + ", 16 bits");
  }
}

}  // namespace
}  // namespace onebit::plan
