#include "onebit/ground/base/run_files.h"

#include <gtest/gtest.h>

namespace onebit::run_files {
namespace {

TEST(RunFiles, OfAStartAreNoSignOfARun) {
  for (const char* name : {"recipe.json", "recipe.resolved.json", "tensorboard", "logs", "lock",
                           "recipe.json.partial", "global_step4.partial"}) {
    EXPECT_TRUE(is_of_start(name)) << name;
  }
  for (const char* name : {"metrics.jsonl", "latest", "state.json", "notes.txt", "recipe", ""}) {
    EXPECT_FALSE(is_of_start(name)) << name;
  }
}

TEST(RunFiles, AreNotWrittenOver) {
  for (const char* name : {"recipe.json", "recipe.resolved.json", "metrics.jsonl", "latest",
                           "evaluation.json", "scores.json", "state.json", "lock"}) {
    EXPECT_TRUE(is_of_run(name)) << name;
  }
  // These are not part of a run: a report can be generated again.
  for (const char* name : {"report.html", "predictions.tsv", "metrics", ""}) {
    EXPECT_FALSE(is_of_run(name)) << name;
  }
}

}  // namespace
}  // namespace onebit::run_files
