#include "onebit/exchange/comm/tcp_hello.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::comm {
namespace {

// The same for all processes that share a machine and its network. Containers are machines.
std::string own_machine(const TcpOptions& options) {
  if (options.group) return fmt::format("group {}", *options.group);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code error;
  const auto network = std::filesystem::read_symlink("/proc/self/ns/net", error);
  return fmt::format("{} {} {}", own_host(), boot, network.string());
}

}  // namespace

std::string own_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "an unnamed machine";
  return name.data();
}

Json hello_of(const TcpOptions& options, const std::vector<TcpEndpoint>& endpoints) {
  Json hello = {{"rank", options.rank},
                {"world", options.world_size},
                {"version", ONEBIT_VERSION},
                {"host", own_host()},
                {"machine", own_machine(options)}};
  if (options.local_rank) hello["local"] = *options.local_rank;
  hello["endpoints"] = Json::array();
  for (const TcpEndpoint& endpoint : endpoints) {
    hello["endpoints"].push_back({{"host", endpoint.host}, {"port", endpoint.port}});
  }
  return hello;
}

std::vector<TcpEndpoint> endpoints_in(const Json& hello) {
  std::vector<TcpEndpoint> endpoints;
  const auto list = hello.find("endpoints");
  require(list != hello.end() && list->is_array(), "sends a malformed note");
  for (const Json& one : *list) {
    require(one.is_object(), "sends a malformed note");
    endpoints.push_back({.host = text_in(one, "host"), .port = number_in(one, "port", 0)});
  }
  return endpoints;
}

std::string text_in(const Json& note, const char* key) {
  const auto value = note.find(key);
  if (value == note.end()) return "";
  require(value->is_string(), "sends a malformed note");
  return printable_line(value->get<std::string>());
}

std::string host_in(const Json& hello) {
  const std::string host = text_in(hello, "host");
  return host.empty() ? "an unnamed machine" : host;
}

int number_in(const Json& note, const char* key, int fallback) {
  const auto value = note.find(key);
  if (value == note.end()) return fallback;
  require(value->is_number_integer() && value->get<int64_t>() >= INT32_MIN &&
              value->get<int64_t>() <= INT32_MAX,
          "sends a malformed note");
  return static_cast<int>(value->get<int64_t>());
}

}  // namespace onebit::comm
