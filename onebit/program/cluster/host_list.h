// The hosts of a run, as a user lists them: DeepSpeed's hostfile, --hosts, --include, --exclude.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/program/cluster/problems.h"

namespace onebit::cluster {

struct Host {
  std::string name;
  // The numbers of the used slots, ascending, one rank per slot. Empty until set_ranks() if no
  // number of slots was given (`--hosts a,b`).
  std::vector<int> slots;
  int room = 0;             // slots that the host has. 0: not given
  std::string place;        // where it is listed: "hosts:3", "--hosts"
  std::string filter = {};  // the options that removed slots: "--include". Empty: none

  int ranks() const { return static_cast<int>(slots.size()); }
  // Whether only some of the slots are used.
  bool is_restricted() const { return ranks() != room; }
};

using Hosts = std::vector<Host>;

Host make_host(std::string name, int room, std::string place);

inline constexpr int kMaxSlots = 4096;  // of one host

// The error in the name of a host. Empty: a shell, mpirun and ssh can only read it as a host. Users
// and batch systems give names alike.
std::string wrong_in_name(std::string_view name);

// Parses DeepSpeed's hostfile: lines `HOST slots=N`, blank lines, and comments that begin with #.
// Other lines are added to `problems`, as are a host listed twice and a file without hosts.
Hosts parse_hostfile(std::string_view text, const std::string& path, Problems& problems);

// Parses "a,b:2, c:4": hosts, each with an optional number of slots.
Hosts parse_host_option(std::string_view text, Problems& problems);

// DeepSpeed's filters, "a@c:0,2": hosts separated by @, each alone (all of its slots) or with slot
// numbers. Keeps only the hosts and slots of `include` (empty: all) and then drops the ones of
// `exclude`. The order is unchanged. Hosts without remaining slots are removed. Unknown hosts and
// slots are added to `problems`, as is a filter that leaves nothing.
Hosts filtered(const Hosts& hosts, std::string_view include, std::string_view exclude,
               Problems& problems);

// Gives every host `ranks_per_host` ranks on its first slots. 0: one rank per slot, and one on a
// host without a number of slots. Hosts with fewer slots are added to `problems`, under the filter
// that removed slots or where they are listed.
void set_ranks(Hosts& hosts, int ranks_per_host, Problems& problems);

int count_ranks(const Hosts& hosts);
std::vector<std::string> names_of(const Hosts& hosts);

}  // namespace onebit::cluster
