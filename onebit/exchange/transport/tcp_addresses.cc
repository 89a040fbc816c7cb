#include "onebit/exchange/transport/tcp_addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/number.h"

namespace onebit::transport {
namespace {

TcpAddress address_from(const sockaddr* from, socklen_t length) {
  TcpAddress address;
  std::memcpy(&address.bytes, from, length);
  address.length = length;
  return address;
}

const sockaddr_in& v4(const TcpAddress& address) {
  return reinterpret_cast<const sockaddr_in&>(address.bytes);
}
const sockaddr_in6& v6(const TcpAddress& address) {
  return reinterpret_cast<const sockaddr_in6&>(address.bytes);
}

// The bytes of the address itself, without port and scope.
std::vector<uint8_t> bits_of(const TcpAddress& address) {
  const bool is_v4 = address.family() == AF_INET;
  const auto* begin = is_v4 ? reinterpret_cast<const uint8_t*>(&v4(address).sin_addr)
                            : reinterpret_cast<const uint8_t*>(&v6(address).sin6_addr);
  return {begin, begin + (is_v4 ? sizeof(in_addr) : sizeof(in6_addr))};
}

std::optional<TcpAddress> parse(const std::string& text) {
  TcpAddress address;
  auto& four = reinterpret_cast<sockaddr_in&>(address.bytes);
  auto& six = reinterpret_cast<sockaddr_in6&>(address.bytes);
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    address.length = sizeof four;
  } else if (::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    address.length = sizeof six;
  } else {
    return std::nullopt;
  }
  return address;
}

struct OwnAddress {
  std::string interface;
  TcpAddress address;
};

bool fits(const OwnAddress& own, const std::string& wanted) {
  if (own.interface == wanted) return true;
  const size_t slash = wanted.find('/');
  const std::optional<TcpAddress> given = parse(wanted.substr(0, slash));
  if (slash == std::string::npos && !given) return false;
  const auto bits = slash == std::string::npos
                        ? std::optional<int>(128)
                        : whole_number<int>(std::string_view(wanted).substr(slash + 1));
  require(given && bits && *bits >= 1 && *bits <= 128,
          "{}: is not a subnet: write one like 10.0.0.0/24 or fd00::/64", wanted);
  if (given->family() != own.address.family()) return false;
  const std::vector<uint8_t> one = bits_of(*given), other = bits_of(own.address);
  const auto most = std::min(static_cast<size_t>(*bits), one.size() * 8);
  for (size_t i = 0; i < most; ++i) {
    const int shift = 7 - static_cast<int>(i % 8);
    if (((one[i / 8] ^ other[i / 8]) >> shift & 1) != 0) return false;
  }
  return true;
}

std::vector<OwnAddress> all_own_addresses() {
  ifaddrs* list = nullptr;
  require_call(::getifaddrs(&list), "the network's interfaces cannot be read");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<OwnAddress> found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    const TcpAddress address = address_from(one->ifa_addr, length);
    // Other hosts cannot name the interface that such an address needs.
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(address).sin6_addr)) continue;
    found.push_back({.interface = one->ifa_name, .address = address});
  }
  return found;
}

}  // namespace

int TcpAddress::port() const {
  return ntohs(family() == AF_INET ? v4(*this).sin_port : v6(*this).sin6_port);
}

void TcpAddress::set_port(int port) {
  const in_port_t in_order = htons(static_cast<uint16_t>(port));
  if (family() == AF_INET) {
    reinterpret_cast<sockaddr_in&>(bytes).sin_port = in_order;
  } else {
    reinterpret_cast<sockaddr_in6&>(bytes).sin6_port = in_order;
  }
}

std::string TcpAddress::host() const {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(get(), length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "an unknown address";
  }
  return text.data();
}

std::string TcpAddress::text() const {
  return family() == AF_INET6 ? fmt::format("[{}]:{}", host(), port())
                              : fmt::format("{}:{}", host(), port());
}

bool TcpAddress::is_loopback() const {
  if (family() == AF_INET) return bits_of(*this)[0] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6(*this).sin6_addr) != 0;
}

TcpAddress TcpAddress::any() const {
  TcpAddress address = *this;
  if (family() == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address.bytes).sin_addr.s_addr = htonl(INADDR_ANY);
  } else {
    reinterpret_cast<sockaddr_in6&>(address.bytes).sin6_addr = in6addr_any;
  }
  return address;
}

std::vector<TcpAddress> resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  const int reason = errno;
  require(code == 0, "{}: {}", host, code == EAI_SYSTEM ? reason_of(reason) : ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::vector<TcpAddress> found;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    found.push_back(address_from(one->ai_addr, one->ai_addrlen));
    found.back().set_port(port);
  }
  require(!found.empty(), "{}: has no address of IPv4 or IPv6", host);
  return found;
}

std::vector<TcpAddress> own_addresses(const std::string& chosen) {
  std::vector<TcpAddress> outside, loopback;
  std::vector<std::string> there;
  for (const OwnAddress& own : all_own_addresses()) {
    there.push_back(fmt::format("{} ({})", own.interface, own.address.host()));
    std::istringstream list(chosen);
    bool wanted = chosen.empty();
    for (std::string one; std::getline(list, one, ',');) wanted = fits(own, one) || wanted;
    if (wanted) (own.address.is_loopback() ? loopback : outside).push_back(own.address);
  }
  const std::vector<TcpAddress>& found = outside.empty() ? loopback : outside;
  require(!found.empty(), "no interface that is up is {}: there {} {}",
          chosen.empty() ? "usable" : chosen, there.size() == 1 ? "is" : "are",
          fmt::join(there, ", "));
  return found;
}

TcpAddress local_address(const Socket& socket) {
  TcpAddress address;
  address.length = sizeof address.bytes;
  require_call(
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.bytes), &address.length),
      "a socket has no address");
  return address;
}

TcpAddress peer_address(const Socket& socket) {
  TcpAddress address;
  address.length = sizeof address.bytes;
  require_call(
      ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address.bytes), &address.length),
      "a connection has no other end");
  return address;
}

Socket listen_at(const TcpAddress& address) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return socket;
  const int on = 1;
  // A restarted run must not wait for the connections of the one before it to time out.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  if (::bind(socket.get(), address.get(), address.length) == 0 &&
      ::listen(socket.get(), SOMAXCONN) == 0) {
    return socket;
  }
  const int reason = errno;
  socket.close();
  errno = reason;
  return socket;
}

Socket listen_in(TcpAddress address, int first_port, int last_port) {
  for (int port = first_port; port <= last_port; ++port) {
    address.set_port(port);
    Socket socket = listen_at(address);
    if (socket.is_open()) return socket;
    const int reason = errno;
    if (reason == EADDRINUSE && port < last_port) continue;
    fail("cannot listen at {}{}: {}", address.text(),
         first_port < last_port ? fmt::format(" nor at the ports from {} on", first_port) : "",
         reason_of(reason));
  }
  fail("no port to listen at");
}

Socket begin_connecting(const TcpAddress& address) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return socket;
  if (::connect(socket.get(), address.get(), address.length) == 0 || errno == EINPROGRESS) {
    return socket;
  }
  const int reason = errno;
  socket.close();
  errno = reason;
  return socket;
}

int finish_connecting(const Socket& socket, double seconds) {
  pollfd source{socket.get(), POLLOUT, 0};
  const int ready = ::poll(&source, 1, static_cast<int>(seconds * 1e3));
  if (ready < 0) return errno;
  if (ready == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

void set_tcp_options(const Socket& socket, double silent_seconds) {
  const auto set = [&](int level, int name, int value) {
    ::setsockopt(socket.get(), level, name, &value, sizeof value);
  };
  constexpr int kProbes = 3;
  const int interval = std::max(1, static_cast<int>(silent_seconds / (2 * kProbes)));
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, static_cast<int>(silent_seconds / 2)));
  set(IPPROTO_TCP, TCP_KEEPINTVL, interval);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(silent_seconds * 1e3));
}

}  // namespace onebit::transport
