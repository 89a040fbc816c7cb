#include "onebit/ground/base/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

namespace onebit {

namespace {

// Files of /proc and /sys have no size, so they are read as streams. Empty if there is no file.
std::string text_of(const Path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

std::string first_word(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  words >> word;
  return word;
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

// Parses "0-3,8,10-11", the kernel's notation for sets of processors.
std::set<int64_t> processor_list(const std::string& text) {
  std::set<int64_t> members;
  std::istringstream parts(first_word(text));
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const std::optional<int64_t> first = number(part);
    const std::optional<int64_t> last =
        dash == std::string::npos ? first : number(std::string_view(part).substr(dash + 1));
    if (!first || !last) continue;
    for (int64_t member = *first; member <= *last; ++member) members.insert(member);
  }
  return members;
}

// Counts processors that share a core once.
int64_t count_cores(const Path& processors, const std::set<int64_t>& members) {
  std::set<std::string> cores;
  for (const int64_t member : members) {
    const Path topology = processors / fmt::format("cpu{}", member) / "topology";
    const std::string siblings = text_of(topology / "thread_siblings_list");
    cores.insert(siblings.empty() ? fmt::format("{}", member) : siblings);
  }
  return static_cast<int64_t>(cores.size());
}

std::set<int64_t> affinity_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::set<int64_t> members;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return members;
  for (int64_t member = 0; member < CPU_SETSIZE; ++member) {
    if (CPU_ISSET(static_cast<size_t>(member), &mask)) members.insert(member);
  }
  return members;
}

// The value after "name :" in /proc/cpuinfo or "name:" in /proc/meminfo.
std::string field(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    if (value != std::string::npos) return line.substr(value);
  }
  return "";
}

int64_t kibibytes(const std::string& text, std::string_view name) {
  return number(field(text, name)).value_or(0) * 1024;
}

int64_t count_nodes(const Path& root) {
  int64_t nodes = 0;
  const Path folder = root / "sys/devices/system/node";
  for (const int64_t node : processor_list(text_of(folder / "online"))) {
    const std::string members = text_of(folder / fmt::format("node{}", node) / "cpulist");
    if (!processor_list(members).empty()) ++nodes;
  }
  return nodes;
}

// Limits of the process's control group (version 2): the strictest of it and its ancestors.
struct GroupLimits {
  double processors = 0;
  int64_t bytes = 0;
};

GroupLimits group_limits(const Path& root) {
  constexpr Path::value_type kMount[] = "sys/fs/cgroup";
  GroupLimits limits;
  std::string place = field(text_of(root / "proc/self/cgroup"), "0:");
  place = place.starts_with(':') ? place.substr(1) : place;
  for (Path group = Path(place).relative_path();; group = group.parent_path()) {
    const Path folder = root / kMount / group;
    std::istringstream quota(text_of(folder / "cpu.max"));
    double allowed = 0, period = 0;
    if (quota >> allowed >> period && period > 0) {
      const double processors = allowed / period;
      if (limits.processors == 0 || processors < limits.processors) limits.processors = processors;
    }
    const std::optional<int64_t> bytes = number(first_word(text_of(folder / "memory.max")));
    if (bytes && (limits.bytes == 0 || *bytes < limits.bytes)) limits.bytes = *bytes;
    if (group.empty()) return limits;
  }
}

int64_t free_bytes(const Path& folder) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) return 0;
  return static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

int64_t peak_resident_bytes() {
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) != 0) return 0;
  return int64_t{used.ru_maxrss} * 1024;
}

Machine read_machine(const Path& root) {
  Machine machine;
  const Path processors = root / "sys/devices/system/cpu";
  const std::set<int64_t> online = processor_list(text_of(processors / "online"));
  const std::set<int64_t> allowed = affinity_mask();
  machine.processor = field(text_of(root / "proc/cpuinfo"), "model name");
  machine.processors = static_cast<int64_t>(online.size());
  machine.cores = count_cores(processors, online);
  machine.allowed_processors = static_cast<int64_t>(allowed.size());
  machine.allowed_cores = count_cores(processors, allowed);
  machine.numa_nodes = count_nodes(root);
  machine.governor = first_word(text_of(processors / "cpu0/cpufreq/scaling_governor"));
  std::istringstream(text_of(root / "proc/loadavg")) >> machine.load;
  const std::string memory = text_of(root / "proc/meminfo");
  machine.memory_bytes = kibibytes(memory, "MemTotal");
  machine.available_bytes = kibibytes(memory, "MemAvailable");
  const GroupLimits limits = group_limits(root);
  machine.quota_processors = limits.processors;
  machine.limit_bytes = limits.bytes;
  machine.shared_memory_bytes = free_bytes(root / "dev/shm");
  machine.has_nvidia_device = std::filesystem::exists(root / "dev/nvidia0");
  return machine;
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

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

std::optional<Path> path_of_program(const std::string& program) {
  const char* folders = std::getenv("PATH");
  std::istringstream list(folders == nullptr ? "" : folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    const Path path = Path(folder.empty() ? "." : folder) / program;
    std::error_code unreadable;
    if (std::filesystem::is_regular_file(path, unreadable) && ::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return std::nullopt;
}

uint64_t random_id() {
  uint64_t id = 0;
  // Not std::random_device: in wheels, the one of g++ 12 would ask for a newer C library.
  require_call(::getrandom(&id, sizeof id, 0), "cannot draw a random number");
  return id;
}

}  // namespace onebit
