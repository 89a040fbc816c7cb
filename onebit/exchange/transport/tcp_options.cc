#include "onebit/exchange/transport/tcp_options.h"

#include <cstdlib>
#include <initializer_list>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/number.h"

namespace onebit::transport {
namespace {

constexpr const char* kMaster = "MASTER_ADDR";
constexpr const char* kPort = "MASTER_PORT";
constexpr int kLastPort = 65535;

std::string text_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::string first_text_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string text = text_of(name); !text.empty()) return text;
  }
  return "";
}

std::optional<int> number_of(const char* name, int least, int most) {
  const std::string text = text_of(name);
  if (text.empty()) return std::nullopt;
  const auto value = whole_number<int>(text);
  require(value && *value >= least && *value <= most,
          "environment variable {}=\"{}\" is not a whole number from {} to {}", name, text, least,
          most);
  return value;
}

int port_in(const std::string& text, const char* name) {
  const auto port = whole_number<int>(text);
  require(port && *port >= 1 && *port <= kLastPort,
          "environment variable {}: \"{}\" is not a port: ports are 1 to {}", name, text,
          kLastPort);
  return *port;
}

void read_ports(TcpOptions& options) {
  constexpr const char* kPorts = "ONEBIT_TCP_PORTS";
  const std::string text = text_of(kPorts);
  if (text.empty()) return;
  const size_t dash = text.find('-');
  options.first_port = port_in(text.substr(0, dash), kPorts);
  options.last_port =
      dash == std::string::npos ? options.first_port : port_in(text.substr(dash + 1), kPorts);
  require(options.first_port <= options.last_port,
          "environment variable {}=\"{}\" ends before it begins: write it like 40000-40999", kPorts,
          text);
}

}  // namespace

bool has_tcp_master() {
  return !text_of(kMaster).empty() && !text_of(kPort).empty();
}

TcpOptions tcp_options_from_environment(int rank, int world_size) {
  constexpr int kMostSeconds = 86400, kMostRanks = 1 << 20;
  for (const char* name : {kMaster, kPort}) {
    require(
        !text_of(name).empty(),
        "environment variable {} is not set: {} ranks over TCP meet at MASTER_ADDR, the name or "
        "address of rank 0, and MASTER_PORT, a free port there; torchrun and `onebit launch "
        "--with tcp` set both",
        name, world_size);
  }
  TcpOptions options{.rank = rank, .world_size = world_size};
  options.master = text_of(kMaster);
  options.port = port_in(text_of(kPort), kPort);
  // torchrun itself listens at MASTER_PORT for as long as its ranks run.
  if (text_of("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    options.port = options.port < kLastPort ? options.port + 1 : options.port - 1;
  }
  options.port = number_of("ONEBIT_TCP_MASTER_PORT", 1, kLastPort).value_or(options.port);
  options.local_rank = number_of("LOCAL_RANK", 0, kMostRanks);
  options.group = number_of("GROUP_RANK", 0, kMostRanks);
  options.on_one_machine = number_of("LOCAL_WORLD_SIZE", 1, kMostRanks) == world_size;
  options.interfaces = first_text_of({"ONEBIT_TCP_INTERFACE", "GLOO_SOCKET_IFNAME"});
  read_ports(options);
  options.run = first_text_of({"ONEBIT_LAUNCH_ID", "TORCHELASTIC_RUN_ID"});
  options.token = text_of("ONEBIT_TCP_TOKEN");
  const auto seconds = [](const char* name, double& to) {
    if (const auto given = number_of(name, 1, kMostSeconds)) to = *given;
  };
  seconds("ONEBIT_TCP_START_SECONDS", options.start_seconds);
  seconds("ONEBIT_TCP_SILENT_SECONDS", options.silent_seconds);
  return options;
}

}  // namespace onebit::transport
