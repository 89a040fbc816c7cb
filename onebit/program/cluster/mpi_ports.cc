#include "onebit/program/cluster/mpi_ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/number.h"

namespace onebit::cluster {
namespace {

constexpr int kFirstPort = 1024, kLastPort = 65535;
constexpr const char* kValues = "values of the ranks";
constexpr const char* kMessages = "messages of the launcher";
// Variables of Open MPI's TCP component (btl/tcp) and of its runtime (oob/tcp), which is PRRTE from
// Open MPI 5 on.
constexpr const char* kValuesFirst = "OMPI_MCA_btl_tcp_port_min_v4";
constexpr const char* kValuesCount = "OMPI_MCA_btl_tcp_port_range_v4";
constexpr const char* kMessagePorts = "OMPI_MCA_oob_tcp_dynamic_ipv4_ports";
constexpr const char* kMessagePortsOf5 = "PRTE_MCA_oob_tcp_dynamic_ipv4_ports";
constexpr const char* kTcpPorts = "ONEBIT_TCP_PORTS";
constexpr const char* kMpichPorts = "MPICH_PORT_RANGE";
constexpr const char* kMpiexecPorts = "MPIEXEC_PORT_RANGE";

int port_in(std::string_view text, const std::string& name, const std::string& whole) {
  const auto port = whole_number<int>(text);
  require(port && *port >= 1 && *port <= kLastPort,
          "{}=\"{}\": \"{}\" is not a port: give numbers from 1 to {}, or unset it", name, whole,
          text, kLastPort);
  return *port;
}

// Parses "41000-41999" and "41000:41999". Of a list it takes the first range.
PortRange range_in(const Variable& variable, const std::string& name, const char* use) {
  const std::string whole = variable(name);
  if (whole.empty()) return {.use = use};
  const std::string_view text = std::string_view(whole).substr(0, whole.find(','));
  const size_t between = text.find_first_of("-:");
  const int first = port_in(text.substr(0, between), name, whole);
  const int last =
      between == std::string_view::npos ? first : port_in(text.substr(between + 1), name, whole);
  require(first <= last, "{}=\"{}\": ends before it begins", name, whole);
  return {.use = use, .first = first, .last = last};
}

// The range in which Open MPI takes the first free port.
PortRange open_mpi_values(const Variable& variable) {
  PortRange range = {.use = kValues, .first = kFirstPort, .last = kLastPort};
  if (const std::string first = variable(kValuesFirst); !first.empty()) {
    range.first = port_in(first, kValuesFirst, first);
  }
  if (const std::string count = variable(kValuesCount); !count.empty()) {
    range.last = std::min(kLastPort, range.first + port_in(count, kValuesCount, count) - 1);
  }
  return range;
}

}  // namespace

std::string PortRange::text() const {
  if (first == 0) return fmt::format("{}-{}", kFirstPort, kLastPort);
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

std::vector<PortRange> mpi_ports(Starter starter, int open_mpi, const Variable& variable) {
  switch (starter) {
    case Starter::kAlone:
      return {};
    case Starter::kOpenMpi:
      return {open_mpi_values(variable),
              range_in(variable, open_mpi >= 5 ? kMessagePortsOf5 : kMessagePorts, kMessages)};
    case Starter::kMpich:
      return {range_in(variable, kMpichPorts, kValues),
              range_in(variable, kMpiexecPorts, kMessages)};
    case Starter::kSrun:
      return {open_mpi_values(variable)};
    case Starter::kTcp:
      return {range_in(variable, kTcpPorts, kValues)};
  }
  return {};
}

}  // namespace onebit::cluster
