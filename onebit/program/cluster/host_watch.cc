#include "onebit/program/cluster/host_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <system_error>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/folder.h"
#include "onebit/program/cluster/launched_processes.h"
#include "onebit/program/cluster/subprocess.h"
#include "onebit/program/cluster/watch_lines.h"

namespace onebit::cluster {
namespace {

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
void stand_by(const HostWatchOptions& options, Beat& beat) {
  const Stopwatch running;
  double heard = 0;
  std::string text;
  while (running.seconds() - heard < options.lease_seconds) {
    pollfd source = {STDIN_FILENO, POLLIN, 0};
    ::poll(&source, 1, 200);
    const bool open = read_available(STDIN_FILENO, text);
    for (const std::string& line : take_lines(text)) {
      heard = running.seconds();
      const auto request = parse_watch_request(line);
      if (request == WatchRequest::kLook) put_ranks(options.launch_id);
      if (request == WatchRequest::kEnd) return;
    }
    if (!open) return;
    beat.show();
  }
}

}  // namespace

int watch_host(const HostWatchOptions& options) {
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
  std::error_code ignored;
  std::filesystem::remove_all(options.folder, ignored);
  put({.kind = Kind::kEnded, .ended_ranks = ended});
  return 0;
}

}  // namespace onebit::cluster
