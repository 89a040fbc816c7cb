// Ranks over TCP as threads of a test: each has sockets of its own, as a process would.
#pragma once

#include <functional>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/transport/tcp_options.h"

namespace onebit::tcp_tests {

// A port of the loopback interface that nobody uses.
int free_port();

bool has_ip_version_6();

// The options of every rank of a run on this machine.
std::vector<transport::TcpOptions> options_of(int ranks, const std::string& master = "127.0.0.1");

// Like comm::run_thread_world(): the error of the rank that failed first by itself.
void run_tcp_world(int ranks, const std::function<void(comm::Communicator&)>& work);
void run_tcp_world(const std::vector<transport::TcpOptions>& options,
                   const std::function<void(comm::Communicator&)>& work);

}  // namespace onebit::tcp_tests
