// The words of `onebit host` and of `onebit doctor --json`, which the launcher runs on every host.
// It writes them with these functions, and cli/host_command.cc and cli/doctor_command.cc read them
// by the same names. `onebit host` is not for users.
#pragma once

#include <string>
#include <vector>

#include "onebit/cluster/host_facts.h"
#include "onebit/cluster/host_watch.h"
#include "onebit/cluster/mpi_ports.h"
#include "onebit/cluster/shell_words.h"

namespace onebit::cluster {

inline constexpr const char* kHostCommand = "host";
inline constexpr const char* kRankCommand = "rank";    // behind "--" the rank's program
inline constexpr const char* kWatchCommand = "watch";  // with the options below
inline constexpr const char* kLaunchOption = "--launch";
inline constexpr const char* kFolderOption = "--folder";
inline constexpr const char* kLeaseOption = "--lease";          // seconds
inline constexpr const char* kLinksCommand = "links";           // with the options below
inline constexpr const char* kPortsOption = "--ports";          // FIRST-LAST, once for each range
inline constexpr const char* kInterfaceOption = "--interface";  // of doctor too

inline constexpr const char* kDoctorCommand = "doctor";  // with the options below
inline constexpr const char* kJsonOption = "--json";
inline constexpr const char* kInputOption = "--input";  // once for each
inline constexpr const char* kStoreOption = "--store";  // once for each
inline constexpr const char* kRunOption = "--run";

// The words that print a host's facts.
Words facts_words(const std::string& program, const HostQuestion& question);
// The words that run `training`, the words behind the program's name, as a rank under a guard.
Words rank_words(const std::string& program, const Words& training);
// The words that start a host's watch.
Words watch_words(const std::string& program, const HostWatchOptions& options);
// The words that start an end of links (link_end.h).
Words link_end_words(const std::string& program, const std::string& interface,
                     const std::vector<PortRange>& ranges);

}  // namespace onebit::cluster
