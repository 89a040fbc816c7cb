#include "onebit/program/cluster/network_addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <sstream>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/system_call.h"

namespace onebit::cluster {
namespace {

struct Address {
  std::string interface, text;
  uint32_t bits = 0;
  bool is_loopback = false;
};

std::vector<Address> all_addresses() {
  ifaddrs* list = nullptr;
  require_call(::getifaddrs(&list), "the network's interfaces cannot be read");
  std::vector<Address> found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof address);
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    found.push_back({.interface = one->ifa_name,
                     .text = text.data(),
                     .bits = ntohl(address.sin_addr.s_addr),
                     .is_loopback = (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  ::freeifaddrs(list);
  return found;
}

// Whether the address belongs to `wanted`, the name of an interface or a subnet.
bool fits(const Address& address, const std::string& wanted) {
  const size_t slash = wanted.find('/');
  if (slash == std::string::npos) return address.interface == wanted;
  in_addr subnet{};
  const auto bits = whole_number<int>(std::string_view(wanted).substr(slash + 1));
  const bool well = ::inet_pton(AF_INET, wanted.substr(0, slash).c_str(), &subnet) == 1;
  require(well && bits && *bits >= 1 && *bits <= 32,
          "--interface {}: is not a subnet: write one like 10.0.0.0/24", wanted);
  return ((address.bits ^ ntohl(subnet.s_addr)) >> (32 - *bits)) == 0;
}

bool fits_any(const Address& address, const std::string& interfaces) {
  std::istringstream list(interfaces);
  bool found = false;
  for (std::string one; std::getline(list, one, ',');) found = fits(address, one) || found;
  return found;
}

}  // namespace

std::vector<std::string> network_addresses(const std::string& interfaces) {
  std::vector<std::string> outside, loopback, there;
  for (const Address& address : all_addresses()) {
    there.push_back(fmt::format("{} ({})", address.interface, address.text));
    if (!interfaces.empty() && !fits_any(address, interfaces)) continue;
    (address.is_loopback ? loopback : outside).push_back(address.text);
  }
  const std::vector<std::string>& found = outside.empty() ? loopback : outside;
  require(!there.empty(),
          "no interface that is up has an IPv4 address: `onebit launch` needs IPv4 between the "
          "hosts, and does not support networks with IPv6 only");
  require(!found.empty(), "no interface that is up is {}: there {} {}", interfaces,
          there.size() == 1 ? "is" : "are", fmt::join(there, ", "));
  return found;
}

}  // namespace onebit::cluster
