#include "onebit/cluster/agent.h"

#include <poll.h>

#include <chrono>
#include <memory>

#include "onebit/base/clock.h"
#include "onebit/base/error.h"
#include "onebit/base/machine.h"

namespace onebit::cluster {
namespace {

constexpr int kTickMilliseconds = 100;
constexpr int kUsageStatus = 2;  // exit status of onebit after a usage error

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string short_name(const std::string& name) {
  return name.substr(0, name.find('.'));
}

bool is_loopback(const std::string& name) {
  return name == kThisMachine || name == "127.0.0.1";
}

bool is_this_machine(const std::string& name) {
  const std::string own = host_name();
  return is_loopback(name) || (!own.empty() && short_name(name) == short_name(own) &&
                               (name.find('.') == std::string::npos || name == own ||
                                own.find('.') == std::string::npos));
}

struct Question {
  std::unique_ptr<Subprocess> process;
  bool output_open = true, error_open = true;
};

// Reads what is available; returns whether the reply is complete.
bool advance(Question& question, Reply& reply) {
  if (question.output_open) {
    question.output_open = read_available(question.process->output(), reply.output);
  }
  if (question.error_open) {
    question.error_open = read_available(question.process->error(), reply.error);
  }
  const auto ended = question.process->poll();
  if (!ended) return false;
  read_available(question.process->output(), reply.output);
  read_available(question.process->error(), reply.error);
  reply.ended = ended;
  reply.answered_at = now();
  return true;
}

void wait_for_any(const std::vector<Question>& questions) {
  std::vector<pollfd> sources;
  for (const Question& question : questions) {
    if (!question.process) continue;
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
  return agent.is_default ? is_this_machine(host) : is_loopback(host);
}

Words words_on(const Agent& agent, const std::string& host, const Words& command,
               const std::string& folder) {
  const std::string line =
      fmt::format("cd {} && exec {}", shell_quoted(folder), shell_line(command));
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
  std::vector<Question> questions(hosts.size());
  for (size_t i = 0; i < hosts.size(); ++i) {
    replies[i].asked_at = now();
    questions[i].process = std::make_unique<Subprocess>(words_on(agent, hosts[i], command, folder));
    questions[i].process->close_input();
  }
  const Stopwatch waited;
  for (bool all = false; !all && waited.seconds() < limit_seconds && !interrupted();) {
    wait_for_any(questions);
    all = true;
    for (size_t i = 0; i < hosts.size(); ++i) {
      if (questions[i].process && advance(questions[i], replies[i])) questions[i].process.reset();
      all = all && !questions[i].process;
    }
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
  if (reply.ended->status == kUsageStatus) {
    return fmt::format("a different onebit version or another program is installed: {}",
                       reply.error.substr(0, reply.error.find('\n')));
  }
  return said.empty() ? reply.ended->text() : said;
}

}  // namespace onebit::cluster
