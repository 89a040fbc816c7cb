#include "onebit/program/launch/start_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::launch {
namespace {

using testing::HasSubstr;
using testing::Not;

StartRequest request() {
  StartRequest request = {
      .hosts = {cluster::make_host("a", 2, ""), cluster::make_host("b", 1, "")},
      .agent = {.words = {"my-ssh", "-q"}},
      .program = "mpirun",
      .open_mpi = 4,
      .threads = 4,
      .bind = true,
      .interface = "10.0.0.0/24",
      .exports = {"OMP_WAIT_POLICY"},
      .folder = "/shared/my project",
      .launch_id = "ID",
      .scratch = "/dev/shm/onebit-ID",
      .command = {"/opt/onebit", "host", "rank", "--", "/opt/onebit", "pretrain"}};
  return request;
}

std::string line(cluster::Starter starter, const StartRequest& given) {
  return cluster::shell_line(words_of(start_command(starter, given)));
}

TEST(StartCommand, OfOpenMpi) {
  EXPECT_EQ(line(cluster::Starter::kOpenMpi, request()),
            "mpirun --host a:2,b:1 -np 3 --map-by slot:PE=4 --bind-to core --mca plm rsh "
            "--mca plm_rsh_agent 'my-ssh -q' --mca plm_rsh_no_tree_spawn 1 "
            "--launch-agent 'env ONEBIT_LAUNCH_ID=ID orted' --mca btl_tcp_if_include 10.0.0.0/24 "
            "--mca oob_tcp_if_include 10.0.0.0/24 --mca oob_tcp_keepalive_time 4 "
            "--mca oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 3 "
            "--mca orte_tmpdir_base /dev/shm/onebit-ID "
            "--mca btl_vader_backing_directory /dev/shm/onebit-ID -x ONEBIT_LAUNCH_ID "
            "-x OMP_WAIT_POLICY --wdir '/shared/my project' "
            "/opt/onebit host rank -- /opt/onebit pretrain");
}

TEST(StartCommand, WithoutMpi) {
  StartRequest given = request();
  given.program = "/opt/onebit";
  EXPECT_EQ(line(cluster::Starter::kTcp, given),
            "/opt/onebit host start --host=a:2 --host=b:1 --agent-word=my-ssh --agent-word=-q "
            "--own-agent --interface 10.0.0.0/24 --export ONEBIT_LAUNCH_ID "
            "--export OMP_WAIT_POLICY --folder '/shared/my project' "
            "-- /opt/onebit host rank -- /opt/onebit pretrain");
}

// Open MPI 5 knows none of the words of 4: 5.0.11 was run with these.
TEST(StartCommand, OfOpenMpi5) {
  StartRequest given = request();
  given.open_mpi = 5;
  EXPECT_EQ(line(cluster::Starter::kOpenMpi, given),
            "mpirun --host a:2,b:1 -np 3 --map-by slot:PE=4 --bind-to core --prtemca plm ssh "
            "--prtemca plm_ssh_agent 'my-ssh -q' --prtemca plm_ssh_no_tree_spawn 1 "
            "--prtemca prte_launch_agent 'env ONEBIT_LAUNCH_ID=ID prted' "
            "--mca btl_tcp_if_include 10.0.0.0/24 --prtemca oob_tcp_if_include 10.0.0.0/24 "
            "--prtemca oob_tcp_keepalive_time 4 --prtemca oob_tcp_keepalive_intvl 2 "
            "--prtemca oob_tcp_keepalive_probes 3 --prtemca prte_tmpdir_base /dev/shm/onebit-ID "
            "--mca btl_sm_backing_directory /dev/shm/onebit-ID -x ONEBIT_LAUNCH_ID "
            "-x OMP_WAIT_POLICY --wdir '/shared/my project' "
            "/opt/onebit host rank -- /opt/onebit pretrain");
}

TEST(StartCommand, OfAnotherNameOfThePrograms) {
  for (const cluster::Starter starter :
       {cluster::Starter::kOpenMpi, cluster::Starter::kMpich, cluster::Starter::kSrun}) {
    StartRequest given = request();
    given.agent.words = {"my-ssh"};
    given.interface = "eth1";
    given.hosts.pop_back();
    given.program = "another";
    EXPECT_TRUE(line(starter, given).starts_with("another ")) << line(starter, given);
  }
}

// Open MPI divides the text at blanks and at colons.
TEST(StartCommand, OfOpenMpiTakesNoAgentThatItWouldDivide) {
  for (const char* word :
       {"/a b/agent", "ProxyCommand=ssh -W %h:%p gate", "tab\there", "a:b", ""}) {
    StartRequest given = request();
    given.agent.words = {"my-ssh", word};
    const std::string said = message_of([&] { start_command(cluster::Starter::kOpenMpi, given); });
    EXPECT_THAT(said, HasSubstr(std::string("but this has \"") + word + "\"")) << said;
    EXPECT_THAT(said, HasSubstr("write a script that runs `my-ssh "));
    given.hosts = {cluster::make_host("localhost", 2, "")};
    EXPECT_NO_THROW(start_command(cluster::Starter::kOpenMpi, given)) << "no agent is used";
  }
}

TEST(StartCommand, OfOpenMpiOnThisMachineNeedsNoAgent) {
  StartRequest here = request();
  here.hosts = {cluster::make_host("localhost", 2, "")};
  here.agent = cluster::default_agent(false);
  here.bind = false;
  here.interface.clear();
  here.as_root = true;
  EXPECT_EQ(line(cluster::Starter::kOpenMpi, here),
            "mpirun --allow-run-as-root --host localhost:2 -np 2 --map-by slot --bind-to none "
            "--mca orte_tmpdir_base /dev/shm/onebit-ID "
            "--mca btl_vader_backing_directory /dev/shm/onebit-ID -x ONEBIT_LAUNCH_ID "
            "-x OMP_WAIT_POLICY --wdir '/shared/my project' "
            "/opt/onebit host rank -- /opt/onebit pretrain");
}

TEST(StartCommand, OfOpenMpiInsideSlurmLeavesDaemonsToSlurm) {
  StartRequest job = request();
  job.agent = cluster::default_agent(true);
  job.in_slurm = true;
  EXPECT_THAT(line(cluster::Starter::kOpenMpi, job), Not(HasSubstr("plm_rsh")));
  job.agent = {.words = {"my-ssh"}};
  EXPECT_THAT(line(cluster::Starter::kOpenMpi, job), HasSubstr("--mca plm_rsh_agent my-ssh"));
}

TEST(StartCommand, OfMpich) {
  StartRequest given = request();
  given.program = "mpiexec";
  given.interface = "eth1";
  EXPECT_THAT(message_of([&] { start_command(cluster::Starter::kMpich, given); }),
              HasSubstr("an agent without arguments, but this is \"my-ssh -q\""));
  given.agent.words = {"my-ssh"};
  EXPECT_EQ(line(cluster::Starter::kMpich, given),
            "mpiexec -hosts a:2,b:1 -n 3 -launcher rsh -launcher-exec my-ssh -bind-to core:4 "
            "-iface eth1 -genvlist ONEBIT_LAUNCH_ID,OMP_WAIT_POLICY "
            "-wdir '/shared/my project' /opt/onebit host rank -- /opt/onebit pretrain");
  given.agent = cluster::default_agent(false);
  EXPECT_THAT(line(cluster::Starter::kMpich, given), HasSubstr("-launcher ssh -bind-to"));
}

TEST(StartCommand, OfMpichTakesOneInterfaceByItsName) {
  StartRequest given = request();
  given.agent.words = {"my-ssh"};
  for (const char* wanted : {"10.0.0.0/24", "eth1,eth2"}) {
    given.interface = wanted;
    EXPECT_THAT(message_of([&] { start_command(cluster::Starter::kMpich, given); }),
                HasSubstr(std::string("--interface ") + wanted +
                          ": MPICH's mpiexec takes the name of one interface"));
  }
}

TEST(StartCommand, OfSrun) {
  StartRequest job = request();
  EXPECT_THAT(message_of([&] { start_command(cluster::Starter::kSrun, job); }),
              HasSubstr("the same number of ranks on every host, but these have a:2,b:1"));
  job.hosts = {cluster::make_host("a", 2, ""), cluster::make_host("b", 2, "")};
  job.program = "srun";
  EXPECT_EQ(line(cluster::Starter::kSrun, job),
            "srun --nodes=2 --nodelist=a,b --ntasks=4 --ntasks-per-node=2 --distribution=block "
            "--mpi=pmix --cpus-per-task=4 --cpu-bind=cores --kill-on-bad-exit=1 --overlap "
            "--export=ONEBIT_LAUNCH_ID,PATH,OMP_WAIT_POLICY '--chdir=/shared/my project' "
            "/opt/onebit host rank -- /opt/onebit pretrain");
}

TEST(StartCommand, OfOneRankIsTheProgram) {
  EXPECT_EQ(line(cluster::Starter::kAlone, request()),
            "/opt/onebit host rank -- /opt/onebit pretrain");
}

// The printed command can be run by a shell without changes, and every part has a reason.
TEST(StartCommand, IsExplained) {
  const StartCommand command = start_command(cluster::Starter::kOpenMpi, request());
  const std::string text = explained(command);
  EXPECT_TRUE(text.starts_with("mpirun \\\n  --host a:2,b:1 \\\n")) << text;
  EXPECT_THAT(text, HasSubstr("#  --host a:2,b:1"));
  EXPECT_THAT(text, HasSubstr("the hosts, and the ranks on each"));
  for (const CommandPart& part : command) EXPECT_THAT(part.why, Not(testing::IsEmpty()));
  std::string shown;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (text[begin] != '#') shown += text.substr(begin, end - begin);
    begin = end + 1;
  }
  for (size_t at; (at = shown.find(" \\")) != std::string::npos;) shown.erase(at + 1, 1);
  EXPECT_EQ(cluster::split_words(shown, "x"), words_of(command));
}

TEST(StartCommand, TheListOfManyHostsDoesNotHideTheReasons) {
  StartRequest many = request();
  many.hosts.clear();
  for (int i = 0; i < 1000; ++i) {
    many.hosts.push_back({.name = fmt::format("host{:04}", i), .slots = {0}});
  }
  const StartCommand command = start_command(cluster::Starter::kOpenMpi, many);
  const std::string text = explained(command);
  EXPECT_THAT(text,
              HasSubstr(cluster::shell_line(command[1].words)));  // what is run has all of them
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (text[begin] == '#') {
      EXPECT_LT(end - begin, 250u) << text.substr(begin, 250);
    }
    begin = end + 1;
  }
}

}  // namespace
}  // namespace onebit::launch
