// What the start table says of optimizer and rate.
#include "onebit/training/optimizer_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::training {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// All rows as one text.
std::string rows_of(const std::string& params, const std::string& scheduler, int world_size = 2,
                    const std::string& more = "") {
  const Json recipe =
      parse_json(fmt::format(R"({{"train_batch_size": 8, "run": {{"steps": 100}}, "scheduler": {},
                      "optimizer": {{"type": "OneBitAdam", "params": {}}}{}}})",
                             scheduler, params, more),
                 "recipe");
  JsonReader reader(recipe, "recipe", "");
  const engine::EngineConfig config = engine::parse_engine_config(reader, "recipe");
  const auto schedule = optim::make_schedule(JsonReader(config.scheduler, "recipe", "scheduler"),
                                             1e-3, config.run.steps);
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
  EXPECT_THAT(rows_of(R"({"freeze_step": "auto"})", linear), HasSubstr("not before update 11"));
  EXPECT_THAT(rows_of(R"({"freeze_step": 20})", linear, 1), HasSubstr("nothing to send"));
  // Its counter begins at 1: the last update of 100 is compressed.
  const std::string parity = rows_of(R"({"freeze_step": 100, "parity": "deepspeed"})", linear);
  EXPECT_THAT(parity, HasSubstr("after update 99 of 100 (parity"));
}

TEST(OptimizerRows, SayHowGradientsTravel) {
  const auto rows = [](const std::string& more, int world_size = 2) {
    return rows_of(R"({"freeze_step": 20})", "null", world_size, more);
  };
  EXPECT_THAT(rows(""), HasSubstr("gradients: averaged as f32, the type of the computation"));
  EXPECT_THAT(rows(R"(, "bf16": {"enabled": true})"), HasSubstr("averaged as bf16, the type"));
  const char* asked = R"(, "bf16": {"enabled": true}, "communication_data_type": "fp32")";
  EXPECT_THAT(rows(asked), HasSubstr("averaged as f32;"));
  EXPECT_THAT(rows("", 1), Not(HasSubstr("averaged")));
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
