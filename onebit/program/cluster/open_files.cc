#include "onebit/program/cluster/open_files.h"

#include <sys/resource.h>

#include <algorithm>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/wording.h"

namespace onebit::cluster {
namespace {

constexpr int64_t kOwnFiles = 64;     // of a launcher without hosts: logs, libraries, the starter
constexpr int64_t kFilesPerHost = 3;  // the pipes of its agent
constexpr int64_t kMoreFiles = 960;   // for mpirun, which inherits the limit
constexpr int64_t kMorePerHost = 9;

}  // namespace

int64_t raise_open_files(int64_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const auto allowed = [](rlim_t value) {
    constexpr auto kMost = int64_t{1} << 40;  // RLIM_INFINITY is more than an int64_t
    return value > static_cast<rlim_t>(kMost) ? kMost : static_cast<int64_t>(value);
  };
  if (allowed(limit.rlim_cur) >= wanted) return allowed(limit.rlim_cur);
  rlimit raised = limit;
  raised.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(wanted));
  if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) return allowed(limit.rlim_cur);
  return allowed(raised.rlim_cur);
}

void raise_open_files_for(int64_t hosts) {
  const int64_t needed = kOwnFiles + kFilesPerHost * hosts;
  const int64_t there = raise_open_files(needed + kMoreFiles + kMorePerHost * hosts);
  require(there >= needed,
          "a launch over {} needs {} open files, but this user may open only {} (ulimit -Hn): "
          "raise that limit "
          "with `ulimit -n {}` as root, or in /etc/security/limits.conf, or use fewer hosts",
          counted(hosts, "host"), needed, there, needed + kMoreFiles + kMorePerHost * hosts);
}

}  // namespace onebit::cluster
