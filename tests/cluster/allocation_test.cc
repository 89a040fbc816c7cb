#include "onebit/cluster/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "onebit/base/file.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Environment of(const std::map<std::string, std::string>& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

TEST(NodeList, ExpandsBrackets) {
  EXPECT_THAT(expand_node_list("n1"), ElementsAre("n1"));
  EXPECT_THAT(expand_node_list("n[1-3,07],m2"), ElementsAre("n1", "n2", "n3", "n07", "m2"));
  EXPECT_THAT(expand_node_list("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(expand_node_list("r[1-2]n[1-2]-ib"),
              ElementsAre("r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"));
}

TEST(NodeList, RefusesWhatItCannotRead) {
  EXPECT_THAT(message_of([] { expand_node_list("n[1-3"); }), HasSubstr("is not closed"));
  EXPECT_THAT(message_of([] { expand_node_list("n[3-1]"); }), HasSubstr("3-1 is not a range"));
  EXPECT_THAT(message_of([] { expand_node_list("n[1-x]"); }), HasSubstr("\"x\" is not a number"));
  EXPECT_THAT(message_of([] { expand_node_list("n[]"); }), HasSubstr("empty"));
}

TEST(Counts, Repeat) {
  EXPECT_THAT(expand_counts("2(x3),1", "T"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(expand_counts("4", "T"), ElementsAre(4));
  EXPECT_THAT(message_of([] { expand_counts("2(x", "T"); }), HasSubstr("is not closed"));
}

TEST(Allocation, OfSlurm) {
  std::map<std::string, std::string> job = {{"SLURM_JOB_ID", "17"},
                                            {"SLURM_JOB_NODELIST", "n[1-2]"},
                                            {"SLURM_TASKS_PER_NODE", "2(x2)"},
                                            {"SLURM_CPUS_PER_TASK", "8"}};
  const auto found = find_allocation(of(job));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->system, "Slurm");
  EXPECT_EQ(found->job, "17");
  EXPECT_EQ(found->threads, 8);
  ASSERT_EQ(found->hosts.size(), 2u);
  EXPECT_EQ(found->hosts[1].name, "n2");
  EXPECT_EQ(found->hosts[1].ranks(), 2);
  job["SLURM_TASKS_PER_NODE"] = "2(x3)";
  EXPECT_THAT(message_of([&] { find_allocation(of(job)); }), HasSubstr("covers 3 nodes"));
  job.erase("SLURM_TASKS_PER_NODE");
  EXPECT_EQ(find_allocation(of(job))->hosts[0].ranks(), 1);
  job["SLURM_NTASKS_PER_NODE"] = "3";
  EXPECT_EQ(find_allocation(of(job))->hosts[0].ranks(), 3);
}

TEST(Allocation, OfPbsAndNone) {
  EXPECT_FALSE(find_allocation(of({})));
  const TemporaryFolder folder;
  write_file_atomically(folder / "nodes", "a\nb\na\n");
  const std::string path = (folder / "nodes").string();
  const std::map<std::string, std::string> job = {{"PBS_NODEFILE", path}, {"PBS_JOBID", "9.x"}};
  const auto found = find_allocation(of(job));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->hosts.size(), 2u);
  EXPECT_EQ(found->hosts[0].ranks(), 2);
  EXPECT_EQ(found->hosts[1].name, "b");
  write_file_atomically(folder / "nodes", "\n");
  EXPECT_THAT(message_of([&] { find_allocation(of(job)); }), HasSubstr("lists no host"));
}

}  // namespace
}  // namespace onebit::cluster
