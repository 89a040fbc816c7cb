// Runs commands on hosts: through ssh or the command of --agent, and through a local shell on this
// machine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/host_list.h"
#include "onebit/program/cluster/subprocess.h"

namespace onebit::cluster {

// raise_open_files() for a launcher of `hosts` hosts. Error: the system does not allow it enough
// files.
void raise_open_files_for(int64_t hosts);

// A command prefix that is invoked like ssh: WORDS HOST SHELL-COMMAND.
struct Agent {
  Words words;
  Words shell = {};         // precedes the command if the agent itself starts no shell
  bool is_default = false;  // the user gave no --agent
};

// ssh in batch mode, so that a missing key is an error instead of a prompt. Inside a Slurm job, a
// job step.
Agent default_agent(bool in_slurm);

// The host name that always means this machine: no agent is used for it.
inline constexpr const char* kThisMachine = "localhost";

// Whether commands for the host run locally, without the agent. This is the only test of whether a
// host is this machine. An agent given by the user is used for every host except kThisMachine and
// 127.0.0.1, even for other names of this machine.
bool runs_here(const Agent& agent, const std::string& host);

// The argument vector that runs `command` in `folder` on the host. Without the folder it ends with
// a status of its own, which failure_of() knows.
Words words_on(const Agent& agent, const std::string& host, const Words& command,
               const std::string& folder);

// The result of a command on a host.
struct Reply {
  std::optional<Ended> ended;  // empty: no answer within the limit
  std::string output, error;
  double asked_at = 0, answered_at = 0;  // seconds since 1970

  bool well() const { return ended && ended->well(); }
};

// Runs the command on all hosts, on many of them at a time, and waits until each has ended or taken
// `limit_seconds`, or until `interrupted` returns true. Replies are in the order of the hosts. Of
// endless output they keep the end.
std::vector<Reply> ask_all(const Agent& agent, const std::vector<std::string>& hosts,
                           const Words& command, const std::string& folder, double limit_seconds,
                           const std::function<bool()>& interrupted);

// One line: the reason why the reply is unusable.
std::string failure_of(const Reply& reply, double limit_seconds);

}  // namespace onebit::cluster
