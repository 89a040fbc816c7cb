#include "onebit/program/cluster/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "onebit/ground/base/file.h"
#include "tests/base/temporary_folder.h"

namespace onebit::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const auto kPatient = [] { return false; };

// A script replaces ssh: HOST COMMAND.
class AgentTest : public testing::Test {
 protected:
  AgentTest() { write_file_atomically(folder_ / "agent", "shift; eval \"$*\"\n"); }
  Agent agent() const { return {.words = {"sh", (folder_ / "agent").string()}}; }
  std::vector<Reply> ask(const Words& command, double limit = 10,
                         const std::function<bool()>& interrupted = kPatient) {
    return ask_all(agent(), {"a", "b"}, command, folder_.path().string(), limit, interrupted);
  }

  TemporaryFolder folder_;
};

TEST_F(AgentTest, GetsHostAndOneWordForAShell) {
  EXPECT_THAT(words_on({.words = {"ssh", "-x"}}, "a", {"run", "b c"}, "/d e"),
              ElementsAre("ssh", "-x", "a", "cd '/d e' || exit 125; exec run 'b c'"));
  EXPECT_THAT(words_on(default_agent(false), "localhost", {"run"}, "/d"),
              ElementsAre("sh", "-c", "cd /d || exit 125; exec run"));
  const Words in_job = words_on(default_agent(true), "n1", {"run"}, "/d");
  ASSERT_EQ(in_job.size(), 10u);
  EXPECT_EQ(in_job[0], "srun");
  EXPECT_EQ(in_job[6], "n1");
  EXPECT_EQ(in_job[9], "cd /d || exit 125; exec run");
}

TEST_F(AgentTest, OfTheUserIsNotUsedForTheLoopback) {
  const Agent ssh = default_agent(false);
  for (const char* here : {"localhost", "127.0.0.1"}) {
    EXPECT_TRUE(runs_here(agent(), here));
    EXPECT_TRUE(runs_here(ssh, here));
    EXPECT_EQ(words_on(agent(), here, {"run"}, "/d").front(), "sh") << here;
    EXPECT_EQ(words_on(agent(), here, {"run"}, "/d")[1], "-c") << here;
  }
  std::array<char, 256> own{};
  ASSERT_EQ(::gethostname(own.data(), own.size() - 1), 0);
  EXPECT_TRUE(runs_here(ssh, own.data()));
  EXPECT_FALSE(runs_here(agent(), own.data()));
}

TEST_F(AgentTest, AsksAllHostsInParallel) {
  // Each host waits until the command runs on the other one too.
  const auto replies = ask({"sh", "-c",
                            "touch here.$$; while [ $(ls here.* | wc -l) -lt 2 ]; do sleep 0.05; "
                            "done; pwd; echo no >&2; exit 3"},
                           60);
  ASSERT_EQ(replies.size(), 2u);
  for (const Reply& reply : replies) {
    ASSERT_TRUE(reply.ended);
    EXPECT_EQ(reply.ended->status, 3);
    EXPECT_EQ(reply.output, folder_.path().string() + "\n");
    EXPECT_EQ(reply.error, "no\n");
    EXPECT_GE(reply.answered_at, reply.asked_at);
    EXPECT_EQ(failure_of(reply, 60), "no");
  }
}

TEST_F(AgentTest, TakesMoreThanAPipeHolds) {
  const auto replies = ask({"sh", "-c", "head -c 300000 /dev/zero"});
  EXPECT_TRUE(replies[0].well());
  EXPECT_EQ(replies[0].output.size(), 300000u);
}

// More hosts than are asked at a time: all are asked, in their order.
TEST_F(AgentTest, AsksManyHosts) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 300; ++i) hosts.push_back("host" + std::to_string(i));
  write_file_atomically(folder_ / "agent", "echo $1\n");
  const auto replies = ask_all(agent(), hosts, {"run"}, "/", 60, kPatient);
  ASSERT_EQ(replies.size(), hosts.size());
  for (size_t i = 0; i < hosts.size(); ++i) EXPECT_EQ(replies[i].output, hosts[i] + "\n");
}

// An agent may complain without end, or write more than anybody wants to keep.
TEST_F(AgentTest, KeepsTheEndOfALongComplaint) {
  const auto replies =
      ask({"sh", "-c", "head -c 1000000 /dev/zero >&2; echo >&2; echo last >&2; exit 255"}, 30);
  EXPECT_EQ(failure_of(replies[0], 30), "cannot be reached: last");
  EXPECT_LE(replies[0].error.size(), 65536u);
}

TEST_F(AgentTest, AFolderThatAHostHasNotIsNamed) {
  const Path missing = folder_ / "not there";
  for (const Agent& one : {agent(), default_agent(false)}) {
    const auto replies = ask_all(one, {"localhost", one.is_default ? "127.0.0.1" : "a"}, {"true"},
                                 missing, 10, kPatient);
    for (const Reply& reply : replies) {
      const std::string said = failure_of(reply, 10);
      EXPECT_THAT(said, HasSubstr("the working folder is missing: "));
      EXPECT_THAT(said, HasSubstr("not there"));
      EXPECT_THAT(said, HasSubstr("create it on every host"));
    }
  }
}

// The command would take an hour, which ctest does not give the test.
TEST_F(AgentTest, WaitsNoLongerThanTheLimit) {
  const auto replies = ask({"sleep", "3600"}, 0.3);
  EXPECT_FALSE(replies[0].ended);
  EXPECT_EQ(failure_of(replies[0], 0.3), "does not answer within 0.3 s");
  EXPECT_FALSE(ask({"sleep", "3600"}, 3600, [] { return true; })[0].ended);
}

TEST_F(AgentTest, ReportsWhyThereIsNoAnswer) {
  EXPECT_THAT(failure_of(ask({"/nowhere/onebit", "doctor"})[0], 1),
              HasSubstr("the program is missing"));
  EXPECT_EQ(failure_of(ask({"sh", "-c", "echo no route >&2; exit 255"})[1], 1),
            "cannot be reached: no route");
  EXPECT_THAT(failure_of(ask({"sh", "-c", "kill -9 $$"})[0], 1), HasSubstr("signal 9"));
  EXPECT_EQ(failure_of(ask({"sh", "-c", "echo no --store >&2; echo help >&2; exit 2"})[0], 1),
            "a different onebit version or another program is installed: no --store");
}

}  // namespace
}  // namespace onebit::cluster
