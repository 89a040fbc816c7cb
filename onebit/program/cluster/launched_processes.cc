#include "onebit/program/cluster/launched_processes.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/number.h"
#include "onebit/program/cluster/rank_guard.h"

namespace onebit::cluster {
namespace {

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

}  // namespace

std::vector<LaunchedProcess> find_launched(const std::string& launch_id,
                                           const std::function<void()>& progress) {
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

std::set<int> end_launched(const std::string& launch_id, double timeout_seconds,
                           const std::function<void()>& progress) {
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

}  // namespace onebit::cluster
