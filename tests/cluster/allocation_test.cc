#include "onebit/program/cluster/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "onebit/ground/base/file.h"
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

// Texts that would fill the memory, or the stack.
TEST(NodeList, HasALimit) {
  for (const char* text : {"a[0-99999]b[0-99999]", "a[0-9999]b[0-9999]", "a[0-100000]",
                           "a[0-60000],b[0-60000]", "a[0-60000,0-60000]"}) {
    EXPECT_THAT(message_of([&] { expand_node_list(text); }),
                testing::AnyOf(HasSubstr("more than 100000 nodes"), HasSubstr("is not a range")))
        << text;
  }
  std::string deep = "n";
  for (int i = 0; i < 30000; ++i) deep += "[1]";
  EXPECT_THAT(message_of([&] { expand_node_list(deep); }), HasSubstr("brackets"));
  EXPECT_THAT(message_of([] { expand_node_list("n[" + std::string(1000, '0') + "-9]"); }),
              HasSubstr("is not a range"));
  EXPECT_THAT(message_of([] { expand_node_list("n[0-9999999999]"); }), HasSubstr("not a number"));
  EXPECT_EQ(expand_node_list("n[0-99999]").size(), 100000u);
}

TEST(Counts, HaveALimit) {
  for (const char* text : {"3000000000", "4097", "-1", "1(x3000000000)", "1(x60000),1(x60000)",
                           "1(x100001)", "1(x0)"}) {
    EXPECT_THAT(message_of([&] { expand_counts(text, "T"); }),
                HasSubstr(std::string("T=\"") + text))
        << text;
  }
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

// The names become words of ssh and mpirun, whoever gives them.
TEST(Allocation, HostsAreHeldToTheRulesForThoseOfUsers) {
  for (const char* name : {"-oProxyCommand=touch", "a;b", "a:2", "n1 n2", "::1", "n[1-2]$(x)"}) {
    const std::map<std::string, std::string> job = {{"SLURM_JOB_ID", "17"},
                                                    {"SLURM_JOB_NODELIST", name}};
    const std::string said = message_of([&] { find_allocation(of(job)); });
    EXPECT_THAT(said, testing::AnyOf(HasSubstr("is not a host name"), HasSubstr("IPv6"))) << name;
    EXPECT_THAT(said, HasSubstr("SLURM_JOB_NODELIST"));
  }
  const TemporaryFolder folder;
  const std::string path = (folder / "nodes").string();
  const std::map<std::string, std::string> job = {{"PBS_NODEFILE", path}};
  for (const char* name : {"-oProxyCommand=touch", "a;b", "a:2", "fe80::1"}) {
    write_file_atomically(path, std::string("a\n") + name + "\n");
    EXPECT_THAT(message_of([&] { find_allocation(of(job)); }),
                HasSubstr(path + ": \"" + name + "\" is "));
  }
  std::string many;
  for (int i = 0; i < 4097; ++i) many += "a\n";
  write_file_atomically(path, many);
  EXPECT_THAT(message_of([&] { find_allocation(of(job)); }), HasSubstr("a has 4097 tasks"));
}

TEST(Allocation, NumbersOfSlurmHaveALimit) {
  std::map<std::string, std::string> job = {{"SLURM_JOB_ID", "17"},
                                            {"SLURM_JOB_NODELIST", "n1,n2"}};
  for (const auto& [name, value] :
       {std::pair("SLURM_TASKS_PER_NODE", "3000000000"), std::pair("SLURM_TASKS_PER_NODE", "0(x2)"),
        std::pair("SLURM_NTASKS_PER_NODE", "3000000000"), std::pair("SLURM_NTASKS_PER_NODE", "0"),
        std::pair("SLURM_CPUS_PER_TASK", "3000000000")}) {
    job[name] = value;
    EXPECT_THAT(message_of([&] { find_allocation(of(job)); }), HasSubstr("--hosts")) << name;
    job.erase(name);
  }
  job["SLURM_JOB_NODELIST"] = "n1,n1";
  EXPECT_THAT(message_of([&] { find_allocation(of(job)); }), HasSubstr("n1 is listed twice"));
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
