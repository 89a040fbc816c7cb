#include "onebit/program/cluster/host_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/json.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::cluster {
namespace {

constexpr size_t kMaxListed = 3;     // hosts listed in a message
constexpr double kClockSeconds = 2;  // a larger difference makes logs and time stamps misleading

std::string bytes(int64_t count) {
  return metrics::human_bytes(static_cast<double>(count));
}

// Usable memory: the free memory, or less if a control group limits it.
int64_t usable_bytes(const HostFacts& facts) {
  return facts.limit_bytes > 0 ? std::min(facts.limit_bytes, facts.available_bytes)
                               : facts.available_bytes;
}

using Value = std::function<std::string(const HostFacts&)>;

const Value kVersion = [](const HostFacts& facts) { return facts.onebit; };
const Value kBuild = [](const HostFacts& facts) { return facts.program_checksum; };
const Value kMpi = [](const HostFacts& facts) { return facts.mpi; };

// The checksums of an input's vocabulary and of the input, as one text. Empty: it cannot be used.
std::string content_of(const HostFacts& facts, size_t input) {
  if (input >= facts.inputs.size() || !facts.inputs[input].error.empty()) return "";
  return facts.inputs[input].vocabulary + " " + facts.inputs[input].checksum;
}

// The value that a host should have.
struct Standard {
  std::string value;  // empty: not known
  std::string where;  // hosts that have it: "on a, b"
};

// The most frequent value. Hosts without a value do not count.
Standard of_most(const std::vector<CheckedHost>& checked, const Value& value_of) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // a value, and its hosts
  for (const CheckedHost& host : checked) {
    const std::string value = host.facts ? value_of(*host.facts) : "";
    if (value.empty()) continue;
    const auto same = [&](const auto& group) { return group.first == value; };
    auto group = std::ranges::find_if(groups, same);
    if (group == groups.end()) group = groups.insert(groups.end(), {value, {}});
    group->second.push_back(host.name);
  }
  const auto fewer = [](const auto& one, const auto& other) {
    return one.second.size() < other.second.size();
  };
  const auto most = std::ranges::max_element(groups, fewer);
  if (most == groups.end()) return {};
  return {.value = most->first, .where = "on " + listed(most->second, kMaxListed)};
}

class Standards {
 public:
  Standards(const std::vector<CheckedHost>& checked, const std::optional<Expected>& expected)
      : checked_(checked), expected_(expected) {}

  Standard of(const Value& value_of) const {
    const std::string value = expected_ ? value_of(expected_->facts) : "";
    if (!value.empty()) return {.value = value, .where = expected_->where};
    return of_most(checked_, value_of);
  }
  Standard of_input(size_t input) const {
    return of([input](const HostFacts& facts) { return content_of(facts, input); });
  }
  std::string remedy(const Standard& standard) const {
    return expected_ && standard.where == expected_->where ? expected_->remedy
                                                           : "copy it from there";
  }

 private:
  const std::vector<CheckedHost>& checked_;
  const std::optional<Expected>& expected_;
};

class Comparison {
 public:
  Comparison(const CheckedHost& first, const Needs& needs, const Standards& standards)
      : first_(first), needs_(needs), standards_(standards) {}

  void add(const CheckedHost& host, int ranks) {
    host_ = &host;
    compare_program();
    if (!facts().network_error.empty()) wrong(facts().network_error);
    compare_inputs();
    check_output();
    check_room(ranks);
    check_clock();
  }

  CheckFindings take() { return std::move(findings_); }

 private:
  void wrong(std::string what) { findings_.wrong.push_back({host_->name, std::move(what)}); }
  void note(std::string what) { findings_.notes.push_back({host_->name, std::move(what)}); }
  const HostFacts& facts() const { return *host_->facts; }
  const HostFacts& firsts() const { return *first_.facts; }

  void compare_program() {
    const HostFacts &own = facts(), &other = firsts();
    if (const Standard version = standards_.of(kVersion); own.onebit != version.value) {
      wrong(fmt::format("onebit {}, but {} it is {}: install the same version on all hosts",
                        own.onebit, version.where, version.value));
    } else if (const Standard build = standards_.of(kBuild); own.program_checksum != build.value) {
      note(fmt::format("a different build of onebit {} than {}", own.onebit, build.where));
    }
    if (const Standard mpi = standards_.of(kMpi); own.mpi != mpi.value) {
      wrong(fmt::format("{}, but {} it is {}: MPI must be the same on all hosts",
                        own.mpi.empty() ? "no MPI" : own.mpi, mpi.where, mpi.value));
    }
    if (own.instruction_set != other.instruction_set) {
      note(
          fmt::format("computes with {}, {} with {}: the run is as fast as the slower one, and the "
                      "two round differently",
                      own.instruction_set, first_.name, other.instruction_set));
    }
  }

  void compare_inputs() {
    for (size_t i = 0; i < facts().inputs.size(); ++i) {
      const InputFacts& own = facts().inputs[i];
      if (!own.error.empty()) {
        wrong(own.error);
        continue;
      }
      const Standard standard = standards_.of_input(i);
      if (standard.value.empty() || standard.value == content_of(facts(), i)) continue;
      const bool same_words = standard.value.starts_with(own.vocabulary + " ");
      wrong(fmt::format("{}: {} than {}: {}", own.path,
                        same_words ? "different content" : "a different vocabulary", standard.where,
                        standards_.remedy(standard)));
    }
  }

  void check_output() {
    if (!facts().output) return;
    const OutputFacts& output = *facts().output;
    if (!output.error.empty()) {
      wrong(output.error);
    } else if (output.free_bytes > 0 && output.free_bytes < needs_.checkpoint_bytes) {
      wrong(fmt::format(
          "{}: {} are free, one checkpoint takes at least {}: free some space, or choose "
          "another --output",
          output.path, bytes(output.free_bytes), bytes(needs_.checkpoint_bytes)));
    }
  }

  void check_room(int ranks) {
    const int64_t wanted = needs_.bytes_per_rank * ranks, there = usable_bytes(facts());
    if (wanted > there && there > 0) {
      wrong(
          fmt::format("{} need {} of memory, {} are free: use fewer ranks there or a smaller "
                      "micro-batch, or end other programs",
                      counted(ranks, "rank"), bytes(wanted), bytes(there)));
    }
    const int cores = usable_cores(*host_);
    if (cores > 0 && needs_.threads * ranks > cores) {
      const std::string text =
          fmt::format("{} of {} share {}: use fewer ranks or threads", counted(ranks, "rank"),
                      counted(needs_.threads, "thread"), counted(cores, "core"));
      needs_.binds ? wrong(text + ", or leave out --bind core") : note(text);
    }
  }

  void check_clock() {
    const double surely = std::abs(host_->clock_seconds) - host_->clock_error;
    if (surely <= kClockSeconds) return;
    note(fmt::format(
        "its clock is {:.1f} s {}: set it (NTP), otherwise times in logs are misleading",
        std::abs(host_->clock_seconds), host_->clock_seconds > 0 ? "ahead" : "behind"));
  }

  const CheckedHost& first_;
  const Needs& needs_;
  const Standards& standards_;
  const CheckedHost* host_ = nullptr;
  CheckFindings findings_;
};

// The facts come after anything that a shell's start-up files may print.
std::optional<HostFacts> parse_facts(const std::string& output) {
  const size_t begin = output.find('{');
  if (begin == std::string::npos) return std::nullopt;
  return host_facts_from(Json::parse(output.substr(begin), nullptr, false));
}

std::string data_cell(const HostFacts& facts) {
  std::vector<std::string> cells;
  for (const InputFacts& input : facts.inputs) {
    cells.push_back(input.error.empty() ? input.checksum : "missing");
  }
  return fmt::format("{}", fmt::join(cells, ", "));
}

std::string gpu_cell(const HostFacts& facts) {
  return facts.cuda_devices.empty() ? "-" : fmt::format("{}", facts.cuda_devices.size());
}

}  // namespace

std::vector<CheckedHost> check_hosts(const Agent& agent, const std::vector<std::string>& hosts,
                                     const Words& command, const std::string& folder,
                                     double limit_seconds,
                                     const std::function<bool()>& interrupted) {
  const auto replies = ask_all(agent, hosts, command, folder, limit_seconds, interrupted);
  std::vector<CheckedHost> checked;
  for (size_t i = 0; i < hosts.size(); ++i) {
    CheckedHost host = {.name = hosts[i], .facts = std::nullopt, .failure = {}};
    const Reply& reply = replies[i];
    if (reply.well()) host.facts = parse_facts(reply.output);
    if (!reply.well()) {
      host.failure = failure_of(reply, limit_seconds);
    } else if (!host.facts) {
      host.failure =
          "its answer is not that of onebit doctor --json: is another program installed there?";
    } else if (host.facts->time > 0) {
      host.clock_error = (reply.answered_at - reply.asked_at) / 2;
      host.clock_seconds = host.facts->time - reply.asked_at - host.clock_error;
    }
    checked.push_back(std::move(host));
  }
  return checked;
}

CheckFindings compare_hosts(const std::vector<CheckedHost>& checked, const Hosts& hosts,
                            const Needs& needs, const std::optional<Expected>& expected) {
  const Standards standards(checked, expected);
  const auto first = std::find_if(checked.begin(), checked.end(),
                                  [](const CheckedHost& host) { return host.facts.has_value(); });
  CheckFindings findings;
  if (first != checked.end()) {
    Comparison comparison(*first, needs, standards);
    for (const CheckedHost& host : checked) {
      const auto own = std::find_if(hosts.begin(), hosts.end(),
                                    [&](const Host& one) { return one.name == host.name; });
      if (host.facts) comparison.add(host, own == hosts.end() ? 0 : own->ranks());
    }
    findings = comparison.take();
  }
  for (const CheckedHost& host : checked) {
    if (!host.facts) findings.wrong.push_back({host.name, host.failure});
  }
  return findings;
}

std::vector<std::string> alike_hosts(const std::vector<CheckedHost>& checked,
                                     const std::optional<Expected>& expected) {
  const Standards standards(checked, expected);
  const std::string version = standards.of(kVersion).value, mpi = standards.of(kMpi).value;
  std::vector<std::string> names;
  for (const CheckedHost& host : checked) {
    if (!host.facts || !host.facts->network_error.empty()) continue;
    if (host.facts->onebit == version && host.facts->mpi == mpi) names.push_back(host.name);
  }
  return names;
}

std::string host_table(const std::vector<CheckedHost>& checked) {
  metrics::TextTable table({"host", "onebit", "instructions", "cores", "memory nodes",
                            "free memory", "load", "GPUs", "clock", "data"});
  table.align_right({3, 4, 5, 6, 7, 8});
  for (const CheckedHost& host : checked) {
    if (!host.facts) {
      table.add_row({host.name, "-", "-", "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const HostFacts& facts = *host.facts;
    table.add_row({host.name, facts.onebit, facts.instruction_set, fmt::format("{}", facts.cores),
                   fmt::format("{}", facts.numa_nodes), bytes(usable_bytes(facts)),
                   fmt::format("{:.2f}", facts.load), gpu_cell(facts),
                   fmt::format("{:+.1f} s", host.clock_seconds), data_cell(facts)});
  }
  return table.text();
}

int usable_cores(const CheckedHost& host) {
  if (!host.facts) return 0;
  const HostFacts& facts = *host.facts;
  int64_t cores = facts.allowed_cores > 0 ? facts.allowed_cores : facts.cores;
  const double quota = facts.quota_processors;
  if (quota > 0) cores = std::min(cores, std::max<int64_t>(1, static_cast<int64_t>(quota)));
  return static_cast<int>(cores);
}

}  // namespace onebit::cluster
