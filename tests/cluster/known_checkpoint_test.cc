#include "onebit/cluster/known_checkpoint.h"

#include <gtest/gtest.h>

#include "onebit/base/folder.h"
#include "tests/base/temporary_folder.h"

namespace onebit::cluster {
namespace {

class KnownCheckpointTest : public testing::Test {
 protected:
  KnownCheckpoint known(const Words& resume = {}) const { return {folder_ / "run", resume}; }
  void save(const std::string& tag) const { make_folder(folder_ / "run" / tag); }

  TemporaryFolder folder_;
};

TEST_F(KnownCheckpointTest, IsWhatTheRunHasReportedOnceItHasBegun) {
  KnownCheckpoint checkpoint = known({"--resume"});
  EXPECT_FALSE(checkpoint.has_begun());
  EXPECT_EQ(checkpoint.tag(), "");
  save("global_step60");
  EXPECT_EQ(checkpoint.tag(), "global_step60");
  checkpoint.add_reported(80);
  EXPECT_TRUE(checkpoint.has_begun());
  EXPECT_EQ(checkpoint.tag(), "global_step80");
  save("global_step120");
  EXPECT_EQ(checkpoint.tag(), "global_step120");
  KnownCheckpoint elsewhere(folder_ / "other", {});
  elsewhere.add_reported(0);
  EXPECT_EQ(elsewhere.tag(), "");
}

TEST_F(KnownCheckpointTest, IsTheGivenTagUntilTheRunHasBegun) {
  KnownCheckpoint checkpoint = known({"--resume", "global_step20"});
  save("global_step40");
  EXPECT_EQ(checkpoint.tag(), "global_step20");
  checkpoint.add_reported(60);
  EXPECT_EQ(checkpoint.tag(), "global_step60");
}

}  // namespace
}  // namespace onebit::cluster
