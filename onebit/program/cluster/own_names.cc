#include "onebit/program/cluster/own_names.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <strings.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "onebit/ground/base/machine.h"

namespace onebit::cluster {
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
