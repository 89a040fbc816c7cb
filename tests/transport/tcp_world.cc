#include "tests/transport/tcp_world.h"

#include <exception>
#include <thread>

#include "onebit/exchange/transport/tcp_addresses.h"
#include "onebit/exchange/transport/tcp_communicator.h"

namespace onebit::tcp_tests {

int free_port() {
  const Socket socket = transport::listen_in(transport::resolve("127.0.0.1", 0).front(), 0, 0);
  return transport::local_address(socket).port();
}

bool has_ip_version_6() {
  return transport::listen_at(transport::resolve("::1", 0).front()).is_open();
}

std::vector<transport::TcpOptions> options_of(int ranks, const std::string& master) {
  const int port = free_port();
  std::vector<transport::TcpOptions> options;
  for (int rank = 0; rank < ranks; ++rank) {
    options.push_back({.rank = rank,
                       .world_size = ranks,
                       .on_one_machine = true,
                       .master = master,
                       .port = port,
                       .run = "test",
                       .token = "secret",
                       .start_seconds = 60});
  }
  return options;
}

void run_tcp_world(const std::vector<transport::TcpOptions>& options,
                   const std::function<void(comm::Communicator&)>& work) {
  std::vector<std::exception_ptr> errors(options.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < options.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto communicator = transport::make_tcp_world(options[rank]);
        comm::run_rank(*communicator, [&] { work(*communicator); });
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::exception_ptr of_peer;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const comm::PeerError&) {
      of_peer = error;
    }
  }
  if (of_peer) std::rethrow_exception(of_peer);
}

void run_tcp_world(int ranks, const std::function<void(comm::Communicator&)>& work) {
  run_tcp_world(options_of(ranks), work);
}

}  // namespace onebit::tcp_tests
