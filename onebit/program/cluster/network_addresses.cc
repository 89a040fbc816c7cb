#include "onebit/program/cluster/network_addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <vector>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/number.h"

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

namespace {

constexpr uint32_t kLoopbackNetwork = 127;

bool are_equal(const std::string& one, const std::string& other) {
  return ::strcasecmp(one.c_str(), other.c_str()) == 0;
}

std::string short_name(const std::string& name) {
  return name.substr(0, name.find('.'));
}

bool is_address(const std::string& name) {
  in_addr address{};
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1;
}

uint32_t bits_of(const sockaddr* address) {
  sockaddr_in copy{};
  std::memcpy(&copy, address, sizeof copy);
  return ntohl(copy.sin_addr.s_addr);
}

std::vector<uint32_t> own_addresses() {
  std::vector<uint32_t> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    found.push_back(bits_of(one->ifa_addr));
  }
  ::freeifaddrs(list);
  return found;
}

// What the system's resolver knows of a name.
struct Resolved {
  std::string full_name;
  std::vector<uint32_t> addresses;
};

Resolved resolved(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_CANONNAME;
  addrinfo* list = nullptr;
  Resolved found;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) return found;
  if (list->ai_canonname != nullptr) found.full_name = list->ai_canonname;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    found.addresses.push_back(bits_of(one->ai_addr));
  }
  ::freeaddrinfo(list);
  return found;
}

}  // namespace

OwnNames this_machine() {
  const std::string host = host_name();
  return {.host = host,
          .full_name = [host] { return resolved(host).full_name; },
          .leads_here =
              [](const std::string& name) {
                const std::vector<uint32_t> own = own_addresses();
                return std::ranges::any_of(resolved(name).addresses, [&](uint32_t address) {
                  return address >> 24U == kLoopbackNetwork ||
                         std::ranges::find(own, address) != own.end();
                });
              }};
}

bool is_name_of(const OwnNames& own, const std::string& name) {
  if (is_address(name)) return own.leads_here(name);
  if (own.host.empty() || !are_equal(short_name(name), short_name(own.host))) return false;
  if (are_equal(name, own.host) || name.find('.') == std::string::npos) return true;
  // The name has a domain. The system's own name, if it has one too, has another.
  if (own.host.find('.') != std::string::npos) return false;
  return are_equal(name, own.full_name()) || own.leads_here(name);
}

}  // namespace onebit::cluster
