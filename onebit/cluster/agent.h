// Running commands on hosts: ssh, or whatever --agent names, and a shell here for this machine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/cluster/host_list.h"
#include "onebit/cluster/shell_words.h"
#include "onebit/cluster/subprocess.h"

namespace onebit::cluster {

// Called as WORDS HOST COMMAND-FOR-A-SHELL, as ssh is.
struct Agent {
  Words words;
  Words shell = {};         // before the command, where the agent itself starts no shell
  bool is_default = false;  // because nothing else was asked for
};

// ssh without questions, so that a missing key is an error and no wait; inside a job of Slurm a
// step of the job.
Agent default_agent(bool in_slurm);

// The name of this machine that every agent leaves alone.
inline constexpr const char* kThisMachine = "localhost";

// Whether commands for the host run here, without the agent: the one answer to whether a host is
// this machine. An agent of the user's reaches every host but kThisMachine and 127.0.0.1, this
// machine by its other names included.
bool runs_here(const Agent& agent, const std::string& host);

// The words that run `command` on the host.
Words words_on(const Agent& agent, const std::string& host, const Words& command,
               const std::string& folder);

// What a command on a host gave.
struct Reply {
  std::optional<Ended> ended;  // empty: no answer within the limit
  std::string output, error;
  double asked_at = 0, answered_at = 0;  // seconds since 1970

  bool well() const { return ended && ended->well(); }
};

// Runs the command on all hosts at once and waits for all, at most `limit_seconds`, or until
// `interrupted` returns true. Replies are in the order of the hosts.
std::vector<Reply> ask_all(const Agent& agent, const std::vector<std::string>& hosts,
                           const Words& command, const std::string& folder, double limit_seconds,
                           const std::function<bool()>& interrupted);

// One line: why there is no use in the reply.
std::string failure_of(const Reply& reply, double limit_seconds);

}  // namespace onebit::cluster
