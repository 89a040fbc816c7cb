#include "onebit/program/launch/host_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/number.h"
#include "onebit/program/cluster/subprocess.h"
#include "onebit/program/launch/rank_guard.h"

namespace onebit::launch {

namespace {

using Kind = WatchReply::Kind;

constexpr std::pair<WatchRequest, std::string_view> kRequests[] = {
    {WatchRequest::kBeat, "beat"}, {WatchRequest::kLook, "look"}, {WatchRequest::kEnd, "end"}};

constexpr std::pair<Kind, std::string_view> kReplies[] = {{Kind::kBeat, "beat"},
                                                          {Kind::kReady, "ready"},
                                                          {Kind::kRank, "rank"},
                                                          {Kind::kLooked, "looked"},
                                                          {Kind::kEnded, "ended"}};

template <typename Value, size_t kCount>
std::string_view name_of(const std::pair<Value, std::string_view> (&names)[kCount], Value value) {
  for (const auto& [one, name] : names) {
    if (one == value) return name;
  }
  return "";
}

template <typename Value, size_t kCount>
std::optional<Value> named(const std::pair<Value, std::string_view> (&names)[kCount],
                           std::string_view word) {
  for (const auto& [value, name] : names) {
    if (name == word) return value;
  }
  return std::nullopt;
}

const std::string kNone = "none";  // instead of ranks

// Takes the text up to the first blank, and the blank, from the front of `line`.
std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size() < line.size() ? word.size() + 1 : word.size());
  return word;
}

}  // namespace

std::string line_of(WatchRequest request) {
  return std::string(name_of(kRequests, request));
}

std::string line_of(const WatchReply& reply) {
  const std::string_view name = name_of(kReplies, reply.kind);
  if (reply.kind == Kind::kRank) return fmt::format("{} {} {}", name, reply.rank, reply.state);
  if (reply.kind != Kind::kEnded) return std::string(name);
  return fmt::format(
      "{} {}", name,
      reply.ended_ranks.empty() ? kNone : fmt::format("{}", fmt::join(reply.ended_ranks, " ")));
}

std::optional<WatchRequest> parse_watch_request(std::string_view line) {
  return named(kRequests, line);
}

std::optional<WatchReply> parse_watch_reply(std::string_view line) {
  const auto kind = named(kReplies, take_word(line));
  if (!kind) return std::nullopt;
  WatchReply reply = {.kind = *kind};
  if (*kind == Kind::kRank) {
    const auto rank = whole_number<int>(take_word(line));
    if (!rank || line.size() != 1) return std::nullopt;
    reply.rank = *rank;
    reply.state = line[0];
  } else if (*kind == Kind::kEnded) {
    if (line == kNone) return reply;
    do {
      const auto rank = whole_number<int>(take_word(line));
      if (!rank) return std::nullopt;
      reply.ended_ranks.insert(*rank);
    } while (!line.empty());
  } else if (!line.empty()) {
    return std::nullopt;
  }
  return reply;
}

namespace {

// The processes of a launch on this machine: those with its id in their environment. They are found
// and ended by process id, never by a name or pattern.
struct LaunchedProcess {
  pid_t pid = 0;
  int rank = -1;   // -1: not a rank itself (a guard, a daemon of the starter)
  char state = 0;  // as in /proc/PID/stat: R, S, D, T (stopped), Z
};

namespace files = std::filesystem;

// Files of /proc have no size. Empty if the process has gone or belongs to another user.
std::string text_of(const files::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

// The value of a variable in an environment in the format of /proc/PID/environ.
std::string variable(const std::string& environment, const std::string& name) {
  const std::string key = name + "=";
  for (size_t begin = 0; begin < environment.size();) {
    const size_t end = std::min(environment.find('\0', begin), environment.size());
    if (environment.compare(begin, key.size(), key) == 0) {
      return environment.substr(begin + key.size(), end - begin - key.size());
    }
    begin = end + 1;
  }
  return "";
}

// The processes that this user may see, without this process. Calls `progress` for every process of
// the machine: a busy one with many takes seconds.
std::vector<LaunchedProcess> find_launched(
    const std::string& launch_id, const std::function<void()>& progress = [] {}) {
  std::vector<LaunchedProcess> found;
  std::error_code error;
  for (files::directory_iterator item("/proc", error), end; !error && item != end;
       item.increment(error)) {
    const int pid = whole_number<int>(item->path().filename().string()).value_or(0);
    if (pid <= 0 || pid == ::getpid()) continue;
    progress();
    const std::string environment = text_of(item->path() / "environ");
    if (variable(environment, kLaunchVariable) != launch_id) continue;
    const std::string stat = text_of(item->path() / "stat");
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= stat.size()) continue;
    found.push_back({.pid = pid,
                     .rank = whole_number<int>(variable(environment, kRankVariable)).value_or(-1),
                     .state = stat[name_end + 2]});
  }
  return found;
}

// Kills all processes of the launch, including those started meanwhile, and waits until they are
// gone, at most `timeout_seconds` (a process inside a driver can take longer). Returns the ranks
// among them.
std::set<int> end_launched(
    const std::string& launch_id, double timeout_seconds,
    const std::function<void()>& progress = [] {}) {
  std::set<int> ranks;
  for (const Stopwatch waited; waited.seconds() < timeout_seconds;) {
    // A zombie has no environment any more, so it is not found.
    const std::vector<LaunchedProcess> alive = find_launched(launch_id, progress);
    if (alive.empty()) break;
    for (const LaunchedProcess& process : alive) {
      if (process.rank >= 0) ranks.insert(process.rank);
      ::kill(process.pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return ranks;
}

using Kind = WatchReply::Kind;

constexpr double kPatienceSeconds = 8;

// A launcher that does not read must not block the watch.
void put(const WatchReply& reply) {
  const std::string line = line_of(reply) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, line.data(), line.size());
}

void put_ranks(const std::string& launch_id) {
  for (const LaunchedProcess& process : find_launched(launch_id)) {
    if (process.rank < 0) continue;
    put({.kind = Kind::kRank, .rank = process.rank, .state = process.state});
  }
  put({.kind = Kind::kLooked});
}

// Shows the launcher every second that the watch is there.
class Beat {
 public:
  void show() {
    if (since_last_ && since_last_->seconds() < kBeatSeconds) return;
    since_last_.emplace();
    put({.kind = Kind::kBeat});
  }

 private:
  std::optional<Stopwatch> since_last_;
};

// Serves the launcher until it requests the end or is gone.
void stand_by(const cluster::HostWatchOptions& options, Beat& beat) {
  const Stopwatch running;
  double heard = 0;
  std::string text;
  while (running.seconds() - heard < options.lease_seconds) {
    pollfd source = {STDIN_FILENO, POLLIN, 0};
    ::poll(&source, 1, 200);
    const bool open = cluster::read_available(STDIN_FILENO, text);
    for (const std::string& line : cluster::take_lines(text)) {
      heard = running.seconds();
      const auto request = parse_watch_request(line);
      if (request == WatchRequest::kLook) put_ranks(options.launch_id);
      if (request == WatchRequest::kEnd) return;
    }
    if (!open) return;
    beat.show();
  }
}

// mpirun and the watch of another name of this host may be removing the same files, at which
// remove_all() ends early.
void remove_scratch(const Path& folder) {
  constexpr int kMostTries = 10;
  std::error_code error;
  for (int i = 0; i < kMostTries; ++i) {
    files::remove_all(folder, error);
    if (!error) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

int watch_host(const cluster::HostWatchOptions& options) {
  // A closed connection arrives as the end of the input. Its signals must not end the watch before
  // it has cleaned up.
  for (const int number : {SIGHUP, SIGPIPE, SIGTERM, SIGINT}) ::signal(number, SIG_IGN);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO}) {
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  }
  make_folder(options.folder);
  put({.kind = Kind::kReady});
  Beat beat;
  stand_by(options, beat);
  const std::set<int> ended =
      end_launched(options.launch_id, kPatienceSeconds, [&beat] { beat.show(); });
  remove_scratch(options.folder);
  put({.kind = Kind::kEnded, .ended_ranks = ended});
  return 0;
}

}  // namespace onebit::launch
