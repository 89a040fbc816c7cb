// The addresses under which other hosts may reach this one.
#pragma once

#include <string>
#include <vector>

namespace onebit::cluster {

// The IPv4 addresses of the interfaces that are up, in the system's order. `interfaces` selects
// some by name ("eth1") or subnet ("10.0.0.0/24"), separated by commas; empty: all. Loopback
// addresses are returned only if there are no others. Errors: a malformed subnet; no matching
// interface, with a list of the existing ones.
std::vector<std::string> network_addresses(const std::string& interfaces);

}  // namespace onebit::cluster
