// The rows of the start table for optimizer and learning rate.
#include "onebit/training/training/table_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"

namespace onebit::training {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

engine::EngineConfig config_of(const std::string& params, const std::string& scheduler,
                               const std::string& more = "", const std::string& run = "") {
  const Json recipe =
      parse_json(fmt::format(R"({{"train_batch_size": 8, "run": {{"steps": 100{}}}, "scheduler": {},
                      "optimizer": {{"type": "OneBitAdam", "params": {}}}{}}})",
                             run, scheduler, params, more),
                 "recipe");
  Keys keys(recipe, "recipe");
  engine::EngineConfig config = engine::parse_engine_config(keys);
  keys.check();
  return config;
}

// All rows as one text.
std::string rows_of(const std::string& params, const std::string& scheduler, int world_size = 2,
                    const std::string& more = "", const std::string& run = "") {
  const engine::EngineConfig config = config_of(params, scheduler, more, run);
  std::vector<std::string> warnings;
  const auto schedule = config.scheduler.make(config.run.steps, warnings);
  std::string text;
  for (const auto& [name, value] : optimizer_rows(config, *schedule, world_size)) {
    text += name + ": " + value + "\n";
  }
  return text;
}

TEST(OptimizerRows, SayWhenTheCompressedPhaseBegins) {
  const std::string linear = R"({"type": "linear", "params": {"warmup_num_steps": 10}})";
  EXPECT_THAT(rows_of(R"({"freeze_step": 20})", linear), HasSubstr("after update 20 of 100;"));
  EXPECT_THAT(rows_of(R"({"freeze_step": 100})", linear),
              HasSubstr("after update 100 of 100: not in this run"));
  EXPECT_THAT(rows_of(R"({"freeze_step": "auto"})", linear),
              HasSubstr("not before update 158 of 100: not in this run"));
  EXPECT_THAT(rows_of(R"({"freeze_step": 20})", linear, 1), HasSubstr("sends nothing"));
}

TEST(OptimizerRows, DescribeHowGradientsAreSent) {
  const auto rows = [](const std::string& more, int world_size = 2) {
    return rows_of(R"({"freeze_step": 20})", "null", world_size, more);
  };
  EXPECT_THAT(rows(""), HasSubstr("gradients: averaged as f32, the type of the computation"));
  EXPECT_THAT(rows(R"(, "bf16": {"enabled": true})"), HasSubstr("averaged as bf16, the type"));
  const char* asked = R"(, "bf16": {"enabled": true}, "communication_data_type": "fp32")";
  EXPECT_THAT(rows(asked), HasSubstr("averaged as f32;"));
  EXPECT_THAT(rows("", 1), Not(HasSubstr("averaged")));
}

TEST(DescribeBuckets, ReportsWhatAMessageHoldsInEitherPhase) {
  ParameterTable table;
  table.add({.name = "weight", .shape = {335, 1'000'000}});
  const auto text_of = [&](const std::string& params, int world_size) {
    const engine::EngineConfig config = config_of(params, "null", R"(, "bf16": {"enabled": true})");
    return describe_buckets(costs::exchange_buckets(table, config, world_size), config, world_size);
  };
  EXPECT_EQ(text_of(R"({"freeze_step": 20})", 8),
            "320 per step, each two messages of 262 kB to every other rank; at one bit per element "
            "83, of 65.7 kB");
  EXPECT_EQ(
      text_of(R"({"freeze_step": 20})", 64),
      "320 per step, each two messages of 32.8 kB to every other rank; at one bit per element "
      "11, of 65.7 kB");
}

TEST(OptimizerRows, SayWhenBucketsLeave) {
  const auto rows = [](const std::string& more, const char* run = "", int world_size = 2) {
    return rows_of(R"({"freeze_step": 20})", "null", world_size, more, run);
  };
  const char* clip = R"(, "gradient_clipping": 2.5)";
  EXPECT_THAT(rows(""), HasSubstr("exchange: buckets are sent during the backward pass\n"));
  EXPECT_THAT(rows(clip),
              HasSubstr("in the compressed phase each is clipped at its usual share of 2.5"));
  EXPECT_THAT(rows(clip, R"(, "clip": "exact")"),
              HasSubstr("in the compressed phase after it: run.clip \"exact\""));
  EXPECT_THAT(rows(R"(, "fp16": {"enabled": true})"),
              HasSubstr("in the compressed phase after it: with fp16"));
  EXPECT_THAT(rows(clip, R"(, "overlap": false)"),
              HasSubstr("after the backward pass (run.overlap is false)"));
  EXPECT_THAT(rows(clip, "", 1), Not(HasSubstr("buckets")));
}

TEST(OptimizerRows, KnowARateThatNeverStopsToRise) {
  const std::string rows = rows_of(R"({"freeze_step": "auto"})", R"({"type": "LRRangeTest"})");
  EXPECT_THAT(rows, HasSubstr("not in this run"));
  EXPECT_THAT(rows, Not(HasSubstr("warm-up has ended")));
}

TEST(OptimizerRows, TakeASchedulerWithoutTypeForAConstantRate) {
  for (const char* scheduler : {"null", "{}", R"({"type": null})"}) {
    EXPECT_THAT(rows_of(R"({"freeze_step": 20})", scheduler), HasSubstr("constant: 0.001"));
  }
}

}  // namespace
}  // namespace onebit::training
