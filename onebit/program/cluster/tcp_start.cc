#include "onebit/program/cluster/tcp_start.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/socket.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/host_ranks.h"
#include "onebit/program/cluster/subprocess.h"

namespace onebit::cluster {
namespace {

constexpr int kTickMilliseconds = 200;

// A host, and the process there that starts its ranks.
struct HostEnd {
  std::string name;
  int first = 0, ranks = 0;
  std::unique_ptr<Subprocess> process;
  std::string output = {}, error = {};
  bool output_open = true, error_open = true;
};

class TcpStart {
 public:
  explicit TcpStart(const TcpStartOptions& options) : options_(options) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP}) {
      sigaddset(&signals, number);
    }
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    signals_ = Socket(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    require_call(signals_.get(), "cannot wait for signals");
    for (const std::string& text : options.hosts) start_host(text);
  }

  int run() {
    while (!have_ended()) {
      wait();
      take_signals();
      for (HostEnd& host : hosts_) take_lines_of(host);
      for (HostEnd& host : hosts_) host.process->flush();
    }
    for (HostEnd& host : hosts_) {
      const Ended ended = host.process->poll().value_or(Ended{.status = 1});
      if (ended.well()) continue;
      if (!has_started_) fail("{}: its ranks could not be started: {}", host.name, ended.text());
      return ended.signal != 0 ? 128 + ended.signal : ended.status;
    }
    return 0;
  }

 private:
  void start_host(const std::string& text) {
    const size_t colon = text.rfind(':');
    const auto ranks = whole_number<int>(std::string_view(text).substr(colon + 1));
    require(colon != std::string::npos && ranks && *ranks > 0, "{}: is not HOST:RANKS", text);
    const std::string name = text.substr(0, colon);
    Words words = {options_.program, kHostCommand, kRanksCommand};
    if (!options_.interface.empty()) {
      words.insert(words.end(), {kInterfaceOption, options_.interface});
    }
    words.emplace_back("--");
    words.insert(words.end(), options_.command.begin(), options_.command.end());
    hosts_.push_back({.name = name,
                      .first = world_,
                      .ranks = *ranks,
                      .process = std::make_unique<Subprocess>(
                          words_on(options_.agent, name, words, options_.folder))});
    world_ += *ranks;
  }

  bool have_ended() {
    return std::ranges::all_of(hosts_, [](HostEnd& host) {
      return host.process->poll() && !host.output_open && !host.error_open;
    });
  }

  void wait() {
    std::vector<pollfd> sources = {{signals_.get(), POLLIN, 0}};
    for (const HostEnd& host : hosts_) {
      if (host.output_open) sources.push_back({host.process->output(), POLLIN, 0});
      if (host.error_open) sources.push_back({host.process->error(), POLLIN, 0});
      if (host.process->is_behind()) sources.push_back({host.process->input(), POLLOUT, 0});
    }
    ::poll(sources.data(), static_cast<nfds_t>(sources.size()), kTickMilliseconds);
  }

  void take_signals() {
    signalfd_siginfo signal{};
    while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
      const auto number = static_cast<int>(signal.ssi_signo);
      for (HostEnd& host : hosts_) {
        // The launcher ends an attempt by SIGTERM.
        if (number == SIGTERM) {
          host.process->close_input();
        } else {
          host.process->write(signal_line(number) + "\n");
        }
      }
    }
  }

  void take_lines_of(HostEnd& host) {
    if (host.output_open) {
      host.output_open = read_available(host.process->output(), host.output);
      for (const std::string& line : take_lines(host.output)) {
        const auto place = parse_meeting_place(line);
        if (!place) {
          fmt::print("{}\n", line);
        } else if (host.first == 0) {
          tell_all(*place);
        }
      }
      std::fflush(stdout);
    }
    if (!host.error_open) return;
    host.error_open = read_available(host.process->error(), host.error);
    for (const std::string& line : take_lines(host.error)) show(line + "\n");
  }

  void tell_all(const MeetingPlace& place) {
    if (has_started_) return;
    has_started_ = true;
    std::vector<std::string> variables = {
        fmt::format("ONEBIT_TCP_TOKEN={:016x}{:016x}", random_id(), random_id())};
    for (const std::string& name : options_.exports) {
      if (const char* value = std::getenv(name.c_str())) {
        variables.push_back(fmt::format("{}={}", name, value));
      }
    }
    if (!options_.interface.empty()) {
      variables.push_back("ONEBIT_TCP_INTERFACE=" + options_.interface);
    }
    const bool are_all_here = std::ranges::all_of(
        hosts_, [this](const HostEnd& host) { return runs_here(options_.agent, host.name); });
    int number = 0;
    for (HostEnd& host : hosts_) {
      host.process->write(
          line_of(HostRanks{.first = host.first,
                            .ranks = host.ranks,
                            .world = world_,
                            .host = number++,
                            .addresses = are_all_here ? "127.0.0.1" : place.addresses,
                            .port = place.port,
                            .variables = variables}) +
          "\n");
    }
  }

  const TcpStartOptions& options_;
  Socket signals_;
  std::vector<HostEnd> hosts_;
  int world_ = 0;
  bool has_started_ = false;
};

}  // namespace

int start_over_tcp(const TcpStartOptions& options) {
  return TcpStart(options).run();
}

}  // namespace onebit::cluster
