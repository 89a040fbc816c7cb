#include "onebit/program/cluster/tcp_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/socket.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/network_addresses.h"
#include "onebit/program/cluster/subprocess.h"

namespace onebit::cluster {

namespace {

constexpr std::string_view kPlaceMark = "onebit-place ", kRanksMark = "onebit-ranks ",
                           kSignalMark = "onebit-signal ";
constexpr int kTickMilliseconds = 200;

int free_port() {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof address;
  require_call(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length),
               "no port is free");
  require_call(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length),
               "a socket has no address");
  return ntohs(address.sin_port);
}

void put_line(int descriptor, std::string line) {
  line += '\n';
  for (size_t at = 0; at < line.size();) {
    const ssize_t written = ::write(descriptor, line.data() + at, line.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the launcher has gone
    at += static_cast<size_t>(written);
  }
}

// The guards of this host's ranks.
class Guards {
 public:
  explicit Guards(Words command) : command_(std::move(command)) {}

  bool are_started() const { return !guards_.empty(); }

  void take(const std::string& line) {
    if (const auto ranks = parse_host_ranks(line); ranks && !are_started()) {
      for (int rank = 0; rank < ranks->ranks; ++rank) {
        guards_.push_back({std::make_unique<Subprocess>(command_, ranks->variables_of(rank))});
        guards_.back().process->close_input();
      }
    }
    if (!line.starts_with(kSignalMark)) return;
    const auto number = whole_number<int>(std::string_view(line).substr(kSignalMark.size()));
    for (const Guard& guard : guards_) {
      if (number) guard.process->signal(*number);
    }
  }

  void add_sources(std::vector<pollfd>& sources) const {
    for (const Guard& guard : guards_) {
      if (guard.output.is_open) sources.push_back({guard.process->output(), POLLIN, 0});
      if (guard.error.is_open) sources.push_back({guard.process->error(), POLLIN, 0});
    }
  }

  void pass_on() {
    for (Guard& guard : guards_) {
      guard.output.pass_on(guard.process->output(), STDOUT_FILENO);
      guard.error.pass_on(guard.process->error(), STDERR_FILENO);
    }
  }

  bool have_ended() {
    return are_started() && std::ranges::all_of(guards_, [](Guard& guard) {
             return guard.process->poll() && !guard.output.is_open && !guard.error.is_open;
           });
  }

  int status() {
    for (Guard& guard : guards_) {
      const Ended ended = guard.process->poll().value_or(Ended{.status = 1});
      if (!ended.well()) return ended.signal != 0 ? 128 + ended.signal : ended.status;
    }
    return 0;
  }

 private:
  struct Stream {
    bool is_open = true;
    std::string text = {};

    // Whole lines only: the streams of several ranks become one.
    void pass_on(int from, int to) {
      if (!is_open) return;
      is_open = read_available(from, text);
      for (const std::string& line : take_lines(text)) put_line(to, line);
      if (!is_open && !text.empty()) put_line(to, text);
    }
  };
  struct Guard {
    std::unique_ptr<Subprocess> process;
    Stream output = {}, error = {};
  };

  Words command_;
  std::vector<Guard> guards_;
};

}  // namespace

std::vector<std::string> HostRanks::variables_of(int rank) const {
  std::vector<std::string> all = variables;
  const auto set = [&](const char* name, const auto& value) {
    all.push_back(fmt::format("{}={}", name, value));
  };
  set("ONEBIT_TRANSPORT", "tcp");
  set("RANK", first + rank);
  set("WORLD_SIZE", world);
  set("LOCAL_RANK", rank);
  set("LOCAL_WORLD_SIZE", ranks);
  set("GROUP_RANK", host);
  set("MASTER_ADDR", addresses);
  set("MASTER_PORT", port);
  return all;
}

std::string line_of(const HostRanks& ranks) {
  const Json json = {{"first", ranks.first},         {"ranks", ranks.ranks},
                     {"world", ranks.world},         {"host", ranks.host},
                     {"addresses", ranks.addresses}, {"port", ranks.port},
                     {"variables", ranks.variables}};
  return std::string(kRanksMark) + json_text(json);
}

std::optional<HostRanks> parse_host_ranks(std::string_view line) {
  if (!line.starts_with(kRanksMark)) return std::nullopt;
  try {
    const Json json = parse_json(line.substr(kRanksMark.size()), "the launcher");
    return HostRanks{.first = json.at("first").get<int>(),
                     .ranks = json.at("ranks").get<int>(),
                     .world = json.at("world").get<int>(),
                     .host = json.at("host").get<int>(),
                     .addresses = json.at("addresses").get<std::string>(),
                     .port = json.at("port").get<int>(),
                     .variables = json.at("variables").get<std::vector<std::string>>()};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string line_of(const MeetingPlace& place) {
  return fmt::format("{}{} {}", kPlaceMark, place.port, place.addresses);
}

std::optional<MeetingPlace> parse_meeting_place(std::string_view line) {
  if (!line.starts_with(kPlaceMark)) return std::nullopt;
  line.remove_prefix(kPlaceMark.size());
  const size_t blank = line.find(' ');
  const auto port = whole_number<int>(line.substr(0, blank));
  if (!port || blank == std::string_view::npos) return std::nullopt;
  return MeetingPlace{.addresses = std::string(line.substr(blank + 1)), .port = *port};
}

std::string signal_line(int number) {
  return fmt::format("{}{}", kSignalMark, number);
}

int run_host_ranks(const std::string& interface, const Words& command) {
  const MeetingPlace place = {
      .addresses = fmt::format("{}", fmt::join(network_addresses(interface), ",")),
      .port = free_port()};
  put_line(STDOUT_FILENO, line_of(place));
  ::fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
  Guards guards(command);
  std::string text;
  while (!guards.have_ended()) {
    std::vector<pollfd> sources = {{STDIN_FILENO, POLLIN, 0}};
    guards.add_sources(sources);
    ::poll(sources.data(), static_cast<nfds_t>(sources.size()), kTickMilliseconds);
    if (sources[0].revents != 0) {
      // Without the launcher the ranks end with this process.
      if (!read_available(STDIN_FILENO, text)) return 1;
      for (const std::string& line : take_lines(text)) guards.take(line);
    }
    guards.pass_on();
  }
  return guards.status();
}

namespace {

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
