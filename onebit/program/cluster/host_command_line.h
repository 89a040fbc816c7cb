// The command lines of `onebit host` and `onebit doctor --json`, which the launcher runs on every
// host. The launcher builds them with these functions. cli/host_command.cc and
// cli/doctor_command.cc parse them with the same names. `onebit host` is not for users.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/printable.h"
#include "onebit/program/cluster/host_facts.h"
#include "onebit/program/cluster/mpi_ports.h"

namespace onebit::cluster {

// Command lines as a POSIX shell reads them.
using Words = std::vector<std::string>;

// The words, quoted where necessary (base/printable.h) and separated by spaces.
std::string shell_line(const Words& words);
// Splits at blanks. 'quoted', "quoted" and \escaped characters are read as in a shell. Nothing is
// expanded. Error: an unclosed quote. `place` names the text in the message.
Words split_words(std::string_view text, const std::string& place);

inline constexpr const char* kHostCommand = "host";
inline constexpr const char* kRankCommand = "rank";    // the rank's program follows "--"
inline constexpr const char* kWatchCommand = "watch";  // with the options below
inline constexpr const char* kStartCommand = "start";  // with the options below
inline constexpr const char* kRanksCommand = "ranks";
inline constexpr const char* kHostOption = "--host";          // NAME:RANKS, repeated
inline constexpr const char* kAgentOption = "--agent-word";   // repeated
inline constexpr const char* kShellOption = "--agent-shell";  // repeated
inline constexpr const char* kOwnAgentOption = "--own-agent";
inline constexpr const char* kExportOption = "--export";  // repeated
inline constexpr const char* kLaunchOption = "--launch";
inline constexpr const char* kFolderOption = "--folder";
inline constexpr const char* kLeaseOption = "--lease";  // seconds
inline constexpr const char* kLinksCommand = "links";   // with the options below
inline constexpr const char* kPortsOption = "--ports";  // FIRST-LAST, repeated for each range
inline constexpr const char* kInterfaceOption = "--interface";  // also of doctor

inline constexpr const char* kDoctorCommand = "doctor";  // with the options below
inline constexpr const char* kJsonOption = "--json";
inline constexpr const char* kInputOption = "--input";  // may be repeated
inline constexpr const char* kStoreOption = "--store";  // may be repeated
inline constexpr const char* kRunOption = "--run";

// The command line that prints a host's facts.
Words facts_words(const std::string& program, const HostQuestion& question);
// The command line that runs `training`, given without the program's name, as a rank under a guard.
Words rank_words(const std::string& program, const Words& training);
// How a host's watch is started (launch/host_watch.h).
struct HostWatchOptions {
  std::string launch_id;
  Path folder;  // temporary files of the attempt, made at the start, removed at the end
  double lease_seconds = 0;  // without a line for so long, the launcher counts as gone
};

// The command line that starts a host's watch.
Words watch_words(const std::string& program, const HostWatchOptions& options);
// The command line that starts a link end (link_end.h).
Words link_end_words(const std::string& program, const std::string& interface,
                     const std::vector<PortRange>& ranges);

}  // namespace onebit::cluster
