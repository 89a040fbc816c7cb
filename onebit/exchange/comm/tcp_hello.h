// The words of a rank about itself (tcp_notes.h), and reading them.
#pragma once

#include <string>
#include <vector>

#include "onebit/exchange/comm/tcp_addresses.h"
#include "onebit/exchange/comm/tcp_options.h"
#include "onebit/ground/base/json.h"

namespace onebit::comm {

// Where a rank listens. An empty host is the address at which rank 0 was reached.
struct TcpEndpoint {
  std::string host;
  int port = 0;
};

// The name of this machine.
std::string own_host();
// Who this rank is, and where it listens.
Json hello_of(const TcpOptions& options, const std::vector<TcpEndpoint>& endpoints);
std::vector<TcpEndpoint> endpoints_in(const Json& hello);

// Values of others' notes. Errors: another type.
std::string text_in(const Json& note, const char* key);
std::string host_in(const Json& hello);
int number_in(const Json& note, const char* key, int fallback);

}  // namespace onebit::comm
