#include "onebit/ground/recipe/key_rows.h"

#include <gtest/gtest.h>

#include "onebit/ground/recipe/keys.h"

namespace onebit {
namespace {

TEST(HasInfluence, IsOfKeysThatChangeWhatIsComputed) {
  Keys keys;
  int64_t steps = 1, every = 2;
  double watching = 0;
  std::map<std::string, int64_t> counts;
  Keys run = keys.section("run", "");
  run.integer("steps", steps, {}, "");
  run.integer("watch", every, {}, About("").without_influence());
  run.number("watching", watching, {}, "");
  run.counts("counts", counts, "");
  keys.section("log", "").integer("every", every, {}, About("").without_influence());
  keys.without_effect("timers", "");
  keys.accepted("comment", "");
  keys.fixed("stage", int64_t{0}, "");
  keys.off("amp", "");
  const KeyRow& rows = keys.rows();
  for (const char* pointer : {"/run/steps", "/run", "/run/counts/a~1b", "/run/counts/7/8",
                              // Not a part of "watch", despite the common prefix.
                              "/run/watching", "/run/watch_longer", "/taskset", "/run/gone", ""}) {
    EXPECT_TRUE(has_influence(rows, pointer)) << pointer;
  }
  for (const char* pointer : {"/run/watch", "/run/watch/0", "/log", "/log/every", "/timers",
                              "/timers/enabled", "/comment/0", "/stage", "/amp/enabled"}) {
    EXPECT_FALSE(has_influence(rows, pointer)) << pointer;
  }
}

}  // namespace
}  // namespace onebit
