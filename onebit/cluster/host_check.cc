#include "onebit/cluster/host_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "onebit/base/counted.h"
#include "onebit/base/json.h"
#include "onebit/metrics/human.h"
#include "onebit/metrics/text_table.h"

namespace onebit::cluster {
namespace {

constexpr double kClockSeconds = 2;  // beyond which logs and time stamps mislead

std::string bytes(int64_t count) {
  return metrics::human_bytes(static_cast<double>(count));
}

// What can be used: free memory, or what a control group leaves.
int64_t usable_bytes(const HostFacts& facts) {
  return facts.limit_bytes > 0 ? std::min(facts.limit_bytes, facts.available_bytes)
                               : facts.available_bytes;
}

class Comparison {
 public:
  Comparison(const CheckedHost& first, const Needs& needs) : first_(first), needs_(needs) {}

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
    if (own.onebit != other.onebit) {
      wrong(fmt::format("onebit {}, and {} has {}: install the same version on all hosts",
                        own.onebit, first_.name, other.onebit));
    } else if (own.program_checksum != other.program_checksum) {
      note(fmt::format("another build of onebit {} than on {}", own.onebit, first_.name));
    }
    if (own.mpi != other.mpi) {
      wrong(fmt::format("{}, and {} has {}: MPI must be the same on all hosts", own.mpi,
                        first_.name, other.mpi));
    }
    if (own.instruction_set != other.instruction_set) {
      note(
          fmt::format("computes with {}, {} with {}: the run is as fast as the slower, and rounds "
                      "differently on the two",
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
      if (i >= firsts().inputs.size() || !firsts().inputs[i].error.empty()) continue;
      const InputFacts& other = firsts().inputs[i];
      if (own.vocabulary != other.vocabulary) {
        wrong(fmt::format("{}: another vocabulary than on {}: copy the data from there", own.path,
                          first_.name));
      } else if (own.checksum != other.checksum) {
        wrong(
            fmt::format("{}: other content than on {}: copy it from there", own.path, first_.name));
      }
    }
  }

  void check_output() {
    if (!facts().output) return;
    const OutputFacts& output = *facts().output;
    if (!output.error.empty()) {
      wrong(output.error);
    } else if (output.free_bytes > 0 && output.free_bytes < needs_.checkpoint_bytes) {
      wrong(
          fmt::format("{}: {} are free, one checkpoint takes at least {}: free some, or choose "
                      "another --output",
                      output.path, bytes(output.free_bytes), bytes(needs_.checkpoint_bytes)));
    }
  }

  void check_room(int ranks) {
    const int64_t wanted = needs_.bytes_a_rank * ranks, there = usable_bytes(facts());
    if (wanted > there && there > 0) {
      wrong(
          fmt::format("{} need {} of memory, {} are free: take fewer ranks there, a smaller "
                      "micro-batch, or end what else runs",
                      counted(ranks, "rank"), bytes(wanted), bytes(there)));
    }
    const int cores = usable_cores(*host_);
    if (cores > 0 && needs_.threads * ranks > cores) {
      note(fmt::format("{} of {} share {}: take fewer ranks or threads", counted(ranks, "rank"),
                       counted(needs_.threads, "thread"), counted(cores, "core")));
    }
  }

  void check_clock() {
    const double surely = std::abs(host_->clock_seconds) - host_->clock_error;
    if (surely <= kClockSeconds) return;
    note(fmt::format("its clock is {:.1f} s {}: set it (NTP), or times in logs mislead",
                     std::abs(host_->clock_seconds),
                     host_->clock_seconds > 0 ? "ahead" : "behind"));
  }

  const CheckedHost& first_;
  const Needs& needs_;
  const CheckedHost* host_ = nullptr;
  CheckFindings findings_;
};

// Facts stand behind what a shell's start-up files may print.
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
      host.failure = "its answer is not that of onebit doctor --json: is another program there?";
    } else if (host.facts->time > 0) {
      host.clock_error = (reply.answered_at - reply.asked_at) / 2;
      host.clock_seconds = host.facts->time - reply.asked_at - host.clock_error;
    }
    checked.push_back(std::move(host));
  }
  return checked;
}

CheckFindings compare_hosts(const std::vector<CheckedHost>& checked, const Hosts& hosts,
                            const Needs& needs) {
  const auto first = std::find_if(checked.begin(), checked.end(),
                                  [](const CheckedHost& host) { return host.facts.has_value(); });
  CheckFindings findings;
  if (first != checked.end()) {
    Comparison comparison(*first, needs);
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

std::vector<std::string> alike_hosts(const std::vector<CheckedHost>& checked) {
  std::vector<std::string> names;
  const HostFacts* first = nullptr;
  for (const CheckedHost& host : checked) {
    if (!host.facts) continue;
    if (!host.facts->network_error.empty()) continue;
    if (first == nullptr) first = &*host.facts;
    if (host.facts->onebit == first->onebit && host.facts->mpi == first->mpi) {
      names.push_back(host.name);
    }
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
