#include "onebit/training/training/session_config.h"

#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"

namespace onebit::training {
namespace {

SessionConfig parse(const char* text) {
  Keys keys(parse_json(text, "recipe.json"), "recipe.json");
  const SessionConfig config = read_session_config(keys);
  keys.check();
  return config;
}

TEST(SessionConfig, IsWhatTheRecipeSets) {
  const SessionConfig defaults = parse("{}");
  EXPECT_EQ(defaults.checkpoint_every, 0);
  EXPECT_EQ(defaults.keep_last, 3);
  EXPECT_TRUE(defaults.tensorboard.enabled);
  EXPECT_EQ(defaults.tensorboard.folder, "");
  const SessionConfig config = parse(
      R"({"run": {"checkpoint_every": 5, "evaluate_every": 7, "keep_last": 2,
                  "checkpoint_copies": 3, "check_replicas_every": 11},
          "tensorboard": {"enabled": false, "output_path": "logs", "job_name": "a"}})");
  EXPECT_EQ(config.checkpoint_every, 5);
  EXPECT_EQ(config.evaluate_every, 7);
  EXPECT_EQ(config.keep_last, 2);
  EXPECT_EQ(config.checkpoint_copies, 3);
  EXPECT_EQ(config.check_replicas_every, 11);
  EXPECT_FALSE(config.tensorboard.enabled);
  EXPECT_EQ(config.tensorboard.folder, "logs/a");
}

TEST(SessionConfig, RefusesWhatCannotBe) {
  for (const char* key : {"keep_last", "checkpoint_copies"}) {
    const std::string recipe = fmt::format(R"({{"run": {{"{}": 0}}}})", key);
    EXPECT_EQ(message_of([&] { parse(recipe.c_str()); }),
              fmt::format("recipe.json: key `run.{}` is 0; it must be a whole number of at least 1",
                          key));
  }
}

}  // namespace
}  // namespace onebit::training
