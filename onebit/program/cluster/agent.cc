#include "onebit/program/cluster/agent.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/wording.h"
#include "onebit/program/cluster/network_addresses.h"

namespace onebit::cluster {

namespace {

constexpr int64_t kOwnFiles = 64;     // of a launcher without hosts: logs, libraries, the starter
constexpr int64_t kFilesPerHost = 3;  // the pipes of its agent
constexpr int64_t kMoreFiles = 960;   // for mpirun, which inherits the limit
constexpr int64_t kMorePerHost = 9;

}  // namespace

void raise_open_files_for(int64_t hosts) {
  const int64_t needed = kOwnFiles + kFilesPerHost * hosts;
  const int64_t there = raise_open_files(needed + kMoreFiles + kMorePerHost * hosts);
  require(there >= needed,
          "a launch over {} needs {} open files, but this user may open only {} (ulimit -Hn): "
          "raise that limit "
          "with `ulimit -n {}` as root, or in /etc/security/limits.conf, or use fewer hosts",
          counted(hosts, "host"), needed, there, needed + kMoreFiles + kMorePerHost * hosts);
}

namespace {

constexpr int kTickMilliseconds = 100;
// A machine that starts agents for a thousand hosts at once does nothing else until some limit.
constexpr size_t kAtOnce = 128;
constexpr int kUsageStatus = 2;       // exit status of onebit after a usage error
constexpr int kNoFolderStatus = 125;  // of the shell of words_on()
constexpr size_t kMaxOutputBytes = size_t{16} << 20, kMaxErrorBytes = size_t{64} << 10;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_loopback(const std::string& name) {
  return name == kThisMachine || name == "127.0.0.1";
}

struct Question {
  std::unique_ptr<Subprocess> process;
  size_t host = 0;
  Stopwatch waited = {};
  bool output_open = true, error_open = true;
};

// Reads what is available, and returns whether the reply is complete.
bool advance(Question& question, Reply& reply) {
  const auto read = [&] {
    if (question.output_open) {
      question.output_open = read_last(question.process->output(), reply.output, kMaxOutputBytes);
    }
    if (question.error_open) {
      question.error_open = read_last(question.process->error(), reply.error, kMaxErrorBytes);
    }
  };
  read();
  const auto ended = question.process->poll();
  if (!ended) return false;
  read();
  reply.ended = ended;
  reply.answered_at = now();
  return true;
}

void wait_for_any(const std::vector<Question>& questions) {
  std::vector<pollfd> sources;
  for (const Question& question : questions) {
    if (question.output_open) sources.push_back({question.process->output(), POLLIN, 0});
    if (question.error_open) sources.push_back({question.process->error(), POLLIN, 0});
  }
  ::poll(sources.data(), static_cast<nfds_t>(sources.size()), kTickMilliseconds);
}

}  // namespace

Agent default_agent(bool in_slurm) {
  if (in_slurm) {
    return {.words = {"srun", "--overlap", "--nodes=1", "--ntasks=1", "--quiet", "--nodelist"},
            .shell = {"sh", "-c"},
            .is_default = true};
  }
  return {.words = {"ssh", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"},
          .shell = {},
          .is_default = true};
}

bool runs_here(const Agent& agent, const std::string& host) {
  return is_loopback(host) || (agent.is_default && is_name_of(this_machine(), host));
}

Words words_on(const Agent& agent, const std::string& host, const Words& command,
               const std::string& folder) {
  const std::string line = fmt::format("cd {} || exit {}; exec {}", shell_quoted(folder),
                                       kNoFolderStatus, shell_line(command));
  if (runs_here(agent, host)) return {"sh", "-c", line};
  Words words = agent.words;
  words.push_back(host);
  words.insert(words.end(), agent.shell.begin(), agent.shell.end());
  words.push_back(line);
  return words;
}

std::vector<Reply> ask_all(const Agent& agent, const std::vector<std::string>& hosts,
                           const Words& command, const std::string& folder, double limit_seconds,
                           const std::function<bool()>& interrupted) {
  std::vector<Reply> replies(hosts.size());
  std::vector<Question> open;
  for (size_t next = 0; (next < hosts.size() || !open.empty()) && !interrupted();) {
    for (; next < hosts.size() && open.size() < kAtOnce; ++next) {
      replies[next].asked_at = now();
      open.push_back(
          {.process = std::make_unique<Subprocess>(words_on(agent, hosts[next], command, folder)),
           .host = next});
      open.back().process->close_input();
    }
    wait_for_any(open);
    std::erase_if(open, [&](Question& question) {
      return advance(question, replies[question.host]) || question.waited.seconds() > limit_seconds;
    });
  }
  return replies;
}

std::string failure_of(const Reply& reply, double limit_seconds) {
  if (!reply.ended) return fmt::format("does not answer within {:g} s", limit_seconds);
  const std::string said = last_line(reply.error);
  if (reply.ended->status == 255) {
    return fmt::format("cannot be reached{}{}", said.empty() ? "" : ": ", said);
  }
  if (reply.ended->status == 126 || reply.ended->status == 127) {
    return fmt::format(
        "the program is missing{}{}: install it at the same path on every host, or "
        "name it with --program",
        said.empty() ? "" : ": ", said);
  }
  if (reply.ended->status == kNoFolderStatus) {
    return fmt::format(
        "the working folder is missing{}{}: create it on every host, or start this command in a "
        "folder that every host has",
        said.empty() ? "" : ": ", said);
  }
  if (reply.ended->status == kUsageStatus) {
    return fmt::format("a different onebit version or another program is installed: {}",
                       reply.error.substr(0, reply.error.find('\n')));
  }
  return said.empty() ? reply.ended->text() : said;
}

}  // namespace onebit::cluster
