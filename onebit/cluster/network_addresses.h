// The addresses under which other hosts may reach this one.
#pragma once

#include <string>
#include <vector>

namespace onebit::cluster {

// The IPv4 addresses of the interfaces that are up, in the system's order: of those that
// `interfaces` names ("eth1", or subnets as "10.0.0.0/24", several with commas); empty: of all.
// Loopback counts only where there is no other. Errors: a name or subnet that is not understood,
// none of the interfaces fits, each with what there is.
std::vector<std::string> network_addresses(const std::string& interfaces);

}  // namespace onebit::cluster
