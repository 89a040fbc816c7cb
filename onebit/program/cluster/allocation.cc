#include "onebit/program/cluster/allocation.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/number.h"

namespace onebit::cluster {
namespace {

constexpr const char* kNodeList = "SLURM_JOB_NODELIST";
constexpr int64_t kMaxNodes = 100000;

constexpr int64_t kMaxMember = 1'000'000'000;  // the largest number in a name
constexpr size_t kMaxDigits = 20;              // leading zeros included
constexpr int kMaxBrackets = 8;                // of a name
constexpr int64_t kMaxThreads = 65536;         // of a task

int64_t number_in(std::string_view text, const std::string& whole, const std::string& name,
                  int64_t most) {
  const auto value = whole_number<int64_t>(text);
  require(value && *value >= 0 && *value <= most,
          "{}=\"{}\": \"{}\" is not a number from 0 to {}; unset it, or give the hosts with "
          "--hosts",
          name, whole, text, most);
  return *value;
}

void require_sane_count(size_t nodes, const std::string& whole) {
  require(nodes <= static_cast<size_t>(kMaxNodes),
          "{}=\"{}\": has more than {} nodes; give the hosts with --hosts", kNodeList, whole,
          kMaxNodes);
}

// A host of the job, whose name and slots are held to the rules for what users give.
Host checked_host(const std::string& name, int64_t slots, const std::string& place) {
  const std::string wrong = wrong_in_name(name);
  require(wrong.empty(), "{}: {}; give the hosts with --hosts", place, wrong);
  require(slots >= 1 && slots <= kMaxSlots,
          "{}: {} has {} tasks: a host has from 1 to {}; give the hosts with --hosts", place, name,
          slots, kMaxSlots);
  return make_host(name, static_cast<int>(slots), place);
}

// The members of "01-03,07", with their leading zeros.
std::vector<std::string> expand_ranges(std::string_view text, const std::string& whole) {
  std::vector<std::string> members;
  std::istringstream parts{std::string(text)};
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const std::string first = part.substr(0, dash);
    const int64_t from = number_in(first, whole, kNodeList, kMaxMember);
    const int64_t to =
        dash == std::string::npos
            ? from
            : number_in(std::string_view(part).substr(dash + 1), whole, kNodeList, kMaxMember);
    require(from <= to && to - from < kMaxNodes && first.size() <= kMaxDigits,
            "{}=\"{}\": {} is not a range", kNodeList, whole, part);
    require_sane_count(members.size() + static_cast<size_t>(to - from) + 1, whole);
    for (int64_t member = from; member <= to; ++member) {
      members.push_back(fmt::format("{:0{}}", member, first.size()));
    }
  }
  require(!members.empty(), "{}=\"{}\": a bracket is empty", kNodeList, whole);
  return members;
}

// One name, which may have brackets.
std::vector<std::string> expand_name(const std::string& name, const std::string& whole) {
  const size_t open = name.find('[');
  if (open == std::string::npos) return {name};
  const size_t close = name.find(']', open);
  require(close != std::string::npos, "{}=\"{}\": a bracket is not closed", kNodeList, whole);
  require(std::ranges::count(name, '[') <= kMaxBrackets,
          "{}=\"{}\": a name has more than {} brackets", kNodeList, whole, kMaxBrackets);
  std::vector<std::string> names;
  const auto rests = expand_name(name.substr(close + 1), whole);
  const auto members =
      expand_ranges(std::string_view(name).substr(open + 1, close - open - 1), whole);
  require_sane_count(members.size() * rests.size(), whole);
  for (const std::string& member : members) {
    for (const std::string& rest : rests) names.push_back(name.substr(0, open) + member + rest);
  }
  return names;
}

std::string text_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? "" : value;
}

Allocation slurm_allocation(const Environment& environment) {
  Allocation job = {.system = "Slurm", .job = text_of(environment, "SLURM_JOB_ID"), .hosts = {}};
  const auto names = expand_node_list(text_of(environment, kNodeList));
  std::vector<int> counts(names.size(), 1);
  const std::string tasks = text_of(environment, "SLURM_TASKS_PER_NODE");
  const std::string each = text_of(environment, "SLURM_NTASKS_PER_NODE");
  if (!tasks.empty()) {
    counts = expand_counts(tasks, "SLURM_TASKS_PER_NODE");
    require(counts.size() == names.size(),
            "SLURM_TASKS_PER_NODE=\"{}\" covers {} nodes, but {} lists {}; give the hosts with "
            "--hosts",
            tasks, counts.size(), kNodeList, names.size());
  } else if (!each.empty()) {
    std::fill(counts.begin(), counts.end(),
              static_cast<int>(number_in(each, each, "SLURM_NTASKS_PER_NODE", kMaxSlots)));
  }
  std::set<std::string> known;
  for (size_t i = 0; i < names.size(); ++i) {
    require(known.insert(names[i]).second, "{}: {} is listed twice; give the hosts with --hosts",
            kNodeList, names[i]);
    job.hosts.push_back(checked_host(names[i], counts[i], kNodeList));
  }
  const std::string threads = text_of(environment, "SLURM_CPUS_PER_TASK");
  if (!threads.empty()) {
    job.threads = static_cast<int>(number_in(threads, threads, "SLURM_CPUS_PER_TASK", kMaxThreads));
  }
  return job;
}

Allocation pbs_allocation(const Environment& environment) {
  const std::string path = text_of(environment, "PBS_NODEFILE");
  Allocation job = {.system = "PBS", .job = text_of(environment, "PBS_JOBID"), .hosts = {}};
  std::vector<std::pair<std::string, int64_t>> counts;
  std::istringstream words(read_given_file(path, {"a list of hosts", uint64_t{16} << 20}));
  for (std::string name; words >> name;) {
    const auto found = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& one) { return one.first == name; });
    if (found == counts.end()) {
      counts.emplace_back(name, 1);
    } else {
      ++found->second;
    }
  }
  require(!counts.empty(), "{}: PBS_NODEFILE names this file, but it lists no host", path);
  for (const auto& [name, count] : counts) job.hosts.push_back(checked_host(name, count, path));
  return job;
}

}  // namespace

std::vector<std::string> expand_node_list(const std::string& text) {
  std::vector<std::string> names;
  int depth = 0;
  std::string name;
  const auto take = [&] {
    if (name.empty()) return;
    for (std::string& one : expand_name(name, text)) names.push_back(std::move(one));
    require_sane_count(names.size(), text);
    name.clear();
  };
  for (const char letter : text) {
    depth += letter == '[' ? 1 : letter == ']' ? -1 : 0;
    if (letter == ',' && depth == 0) {
      take();
    } else {
      name += letter;
    }
  }
  require(depth == 0, "{}=\"{}\": a bracket is not closed", kNodeList, text);
  take();
  return names;
}

std::vector<int> expand_counts(const std::string& text, const std::string& name) {
  std::vector<int> counts;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t times = part.find("(x");
    const int64_t count = number_in(part.substr(0, times), text, name, kMaxSlots);
    int64_t repeat = 1;
    if (times != std::string::npos) {
      require(part.back() == ')', "{}=\"{}\": {} is not closed", name, text, part);
      repeat = number_in(part.substr(times + 2, part.size() - times - 3), text, name, kMaxNodes);
    }
    require(repeat >= 1 && repeat + static_cast<int64_t>(counts.size()) <= kMaxNodes,
            "{}=\"{}\": {} is not a valid number of nodes", name, text, repeat);
    counts.insert(counts.end(), static_cast<size_t>(repeat), static_cast<int>(count));
  }
  return counts;
}

std::optional<Allocation> find_allocation(const Environment& environment) {
  if (environment("SLURM_JOB_ID") != nullptr && environment(kNodeList) != nullptr) {
    return slurm_allocation(environment);
  }
  if (environment("PBS_NODEFILE") != nullptr) return pbs_allocation(environment);
  return std::nullopt;
}

}  // namespace onebit::cluster
