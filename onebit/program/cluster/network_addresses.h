// The addresses under which other hosts may reach this one.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace onebit::cluster {

// The IPv4 addresses of the interfaces that are up, in the system's order. `interfaces` selects
// some by name ("eth1") or subnet ("10.0.0.0/24"), separated by commas. Empty: all. Loopback
// addresses are returned only if there are no others. Errors: a malformed subnet, or no matching
// interface, with a list of the existing ones.
std::vector<std::string> network_addresses(const std::string& interfaces);

// The names and addresses under which this machine may stand in a list of hosts.
struct OwnNames {
  std::string host;                        // as the system reports it, with or without its domain
  std::function<std::string()> full_name;  // with its domain. Empty: not known
  // Whether the name, or the IPv4 address, stands for an address of this machine.
  std::function<bool(const std::string& name)> leads_here;
};

OwnNames this_machine();

// Whether a host's name in a list is this machine. Another machine may have the same name in
// another domain, so a domain counts only if it is known to be this machine's. Names are looked up
// only if they begin like this machine's.
bool is_name_of(const OwnNames& own, const std::string& name);

}  // namespace onebit::cluster
