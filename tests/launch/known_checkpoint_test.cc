#include "onebit/program/launch/known_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "onebit/ground/base/folder.h"
#include "tests/base/temporary_folder.h"

namespace onebit::launch {
namespace {

constexpr const char *kBeginning = "the beginning",
                     *kUnknown = "its newest checkpoint, if a host has one";

cluster::CheckedHost host(const std::string& checkpoint) {
  cluster::HostFacts facts;
  facts.output = cluster::OutputFacts{.path = "run", .checkpoint = checkpoint};
  return {.name = "a", .facts = facts, .failure = {}};
}

cluster::CheckedHost silent_host() {
  return {.name = "b", .facts = std::nullopt, .failure = "does not answer"};
}

class KnownCheckpointTest : public testing::Test {
 protected:
  KnownCheckpoint known(const cluster::Words& resume = {}) const {
    return {folder_ / "run", resume};
  }
  void save(const std::string& tag) const { make_folder(folder_ / "run" / tag); }

  TemporaryFolder folder_;
};

TEST_F(KnownCheckpointTest, IsTheNewestOfAllHosts) {
  KnownCheckpoint checkpoint = known({"--resume"});
  checkpoint.add({host("global_step40"), host("global_step100"), host("")});
  EXPECT_EQ(checkpoint.words(), "global_step100");
  save("global_step120");
  EXPECT_EQ(checkpoint.words(), "global_step120");
  EXPECT_FALSE(checkpoint.has_begun());
  EXPECT_TRUE(checkpoint.is_here());
  EXPECT_FALSE(KnownCheckpoint(folder_ / "other", {}).is_here());
}

TEST_F(KnownCheckpointTest, IsNoneOnlyWhereAllHostsHaveSaidSo) {
  KnownCheckpoint checkpoint = known();
  EXPECT_EQ(checkpoint.words(), kUnknown);
  checkpoint.add({});
  checkpoint.add({host(""), silent_host()});
  EXPECT_EQ(checkpoint.words(), kUnknown);
  EXPECT_EQ(checkpoint.tag(), "");
  checkpoint.add({host(""), host("")});
  EXPECT_EQ(checkpoint.words(), kBeginning);
  // One answering host suffices, whichever hosts are silent.
  checkpoint.add({host("global_step20"), silent_host()});
  EXPECT_EQ(checkpoint.words(), "global_step20");
}

TEST_F(KnownCheckpointTest, IsWhatTheRunHasReportedOnceItHasBegun) {
  KnownCheckpoint checkpoint = known({"--resume"});
  checkpoint.add({host("global_step100")});
  checkpoint.add_reported(80);  // the checkpoint of step 100 was not whole
  EXPECT_TRUE(checkpoint.has_begun());
  EXPECT_EQ(checkpoint.words(), "global_step80");
  save("global_step60");
  EXPECT_EQ(checkpoint.words(), "global_step80");
  save("global_step120");
  EXPECT_EQ(checkpoint.words(), "global_step120");
  KnownCheckpoint first = known();
  first.add_reported(0);
  EXPECT_EQ(first.words(), "global_step120");
  KnownCheckpoint elsewhere(folder_ / "other", {});
  elsewhere.add_reported(0);
  EXPECT_EQ(elsewhere.words(), kBeginning);
}

TEST_F(KnownCheckpointTest, IsTheGivenTagUntilTheRunHasBegun) {
  KnownCheckpoint checkpoint = known({"--resume", "global_step20"});
  checkpoint.add({host("global_step40")});
  EXPECT_EQ(checkpoint.words(), "global_step20");
  checkpoint.add_reported(60);
  EXPECT_EQ(checkpoint.words(), "global_step60");
}

TEST_F(KnownCheckpointTest, ATagThatNoHostHasIsNamed) {
  const auto with = [](std::vector<std::string> tags) {
    cluster::CheckedHost one = host(tags.empty() ? "" : tags.back());
    one.facts->output->checkpoints = std::move(tags);
    return one;
  };
  const KnownCheckpoint checkpoint = known({"--resume", "global_step20"});
  const auto what = [&](const std::vector<cluster::CheckedHost>& checked) {
    const cluster::Problems problems = checkpoint.absent_tag(checked);
    if (problems.empty()) return std::string();
    EXPECT_EQ(problems.front().place, "--resume global_step20");
    return problems.front().what;
  };
  EXPECT_THAT(what({with({}), with({})}), testing::HasSubstr("no host holds any checkpoint"));
  EXPECT_THAT(what({with({"global_step9", "global_step100"}), with({"global_step30"})}),
              testing::HasSubstr("there are global_step9, global_step30, global_step100"));
  EXPECT_EQ(what({with({}), with({"global_step20", "global_step30"})}), "");
  // The silent host may have it.
  EXPECT_EQ(what({with({"global_step30"}), silent_host()}), "");
  EXPECT_EQ(what({}), "");
  EXPECT_TRUE(known({"--resume"}).absent_tag({with({})}).empty());
}

}  // namespace
}  // namespace onebit::launch
