#include "onebit/program/cluster/host_command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::cluster {
namespace {

using testing::ElementsAre;

// launcher_test.py tests that the program accepts these words.
TEST(HostWords, NameTheProgramAndWhatItNeeds) {
  EXPECT_THAT(
      rank_words("/bin/onebit", {"pretrain", "--resume"}),
      ElementsAre("/bin/onebit", "host", "rank", "--", "/bin/onebit", "pretrain", "--resume"));
  EXPECT_THAT(
      watch_words("onebit", {.launch_id = "ab-1", .folder = "/dev/shm/x", .lease_seconds = 30}),
      ElementsAre("onebit", "host", "watch", "--launch", "ab-1", "--folder", "/dev/shm/x",
                  "--lease", "30"));
  EXPECT_THAT(facts_words("onebit", {}), ElementsAre("onebit", "doctor", "--json"));
  EXPECT_THAT(facts_words("onebit", {.inputs = {"r", "m"}, .stores = {"d"}, .output = "o"}),
              ElementsAre("onebit", "doctor", "--json", "--input", "r", "--input", "m", "--store",
                          "d", "--run", "o"));
}

TEST(HostWords, KeepPartsOfSeconds) {
  EXPECT_EQ(
      watch_words("onebit", {.launch_id = "a", .folder = "f", .lease_seconds = 1234567.25}).back(),
      "1234567.25");
}

}  // namespace
}  // namespace onebit::cluster
