// The tables at the start and at the end of a run.
#include <gmock/gmock.h>

#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRecipe = R"({
  "train_batch_size": 4,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 12}},
  "model": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 64, "max_position_embeddings": 32},
  "data": {"sequence_length": 32, "max_predictions_per_sequence": 5},
  "run": {"steps": 12, "checkpoint_every": 4, "seed": 3}})";

class TablesTest : public PretrainingRuns {
 protected:
  PretrainingOptions options(int64_t steps, const Json& freeze_step) const {
    PretrainingOptions options = options_of(kRecipe, "run");
    options.valid.clear();
    options.quiet = false;
    options.recipe.values["run"]["steps"] = steps;
    options.recipe.values["optimizer"]["params"]["freeze_step"] = freeze_step;
    return options;
  }
  // The text of a row in the last table of a kind, or "" if it has none of this name.
  std::string row(const std::string& kind, const std::string& name) const {
    std::string found;
    for (const Json& line : finetune::lines_in(corpus_.folder("run"))) {
      if (line.at("kind") != kind) continue;
      found.clear();
      for (const Json& one : line.at("rows")) {
        if (one.at(0) == name) found = one.at(1).get<std::string>();
      }
    }
    return found;
  }
};

TEST_F(TablesTest, ARunThatEndsInItsWarmupReportsWhy) {
  train(options(12, 12), 2);
  EXPECT_THAT(row("end", "compressed phase"),
              HasSubstr("none: the run ended in its warm-up, which lasts until update 12"));
  PretrainingOptions longer = options(16, "auto");
  longer.resume = true;
  train(longer, 2);
  EXPECT_THAT(row("end", "compressed phase"), HasSubstr("\"auto\" has not seen"));
  longer = options(20, 17);
  longer.resume = true;
  train(longer, 2);
  EXPECT_THAT(row("end", "compressed phase since the resume"), HasSubstr("3 steps"));
  EXPECT_EQ(row("end", "compressed phase"), "");
}

// The phase of a resumed run is its checkpoint's, or starts with its next update.
TEST_F(TablesTest, AResumedRunReportsItsPhase) {
  const auto phase_after = [&](const std::string& tag, int64_t steps, int64_t freeze_step,
                               int world = 2) {
    PretrainingOptions given = options(steps, freeze_step);
    given.resume = !tag.empty();
    given.tag = tag;
    train(given, world);
    return row("start", "compressed phase");
  };
  EXPECT_THAT(phase_after("", 12, 20), HasSubstr("after update 20 of 12: not in this run"));
  EXPECT_THAT(phase_after("global_step8", 12, 4), HasSubstr("after update 9 of 12;"));
  EXPECT_THAT(phase_after("global_step12", 16, 4), HasSubstr("started by update 12 of 16;"));
  EXPECT_THAT(phase_after("global_step12", 16, 15), HasSubstr("after update 15 of 16;"));
  EXPECT_THAT(phase_after("global_step16", 18, 4, 1), HasSubstr("frozen by update 16 of 18"));
}

}  // namespace
}  // namespace onebit::pretrain
