#include "onebit/program/launch/launch_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/wording.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/link_report.h"

namespace onebit::launch {
namespace {

constexpr double kAnswerSeconds = 30;

void append(cluster::Problems& to, const cluster::Problems& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

std::vector<cluster::CheckedHost> LaunchChecks::ask() const {
  const cluster::HostQuestion question = {.inputs = training_.inputs,
                                          .stores = training_.stores,
                                          .output = training_.output,
                                          .interface = options_.interface};
  return cluster::check_hosts(options_.agent, cluster::names_of(options_.hosts),
                              cluster::facts_words(options_.program, question), options_.folder,
                              kAnswerSeconds, interrupted_);
}

cluster::Problems LaunchChecks::problems(const std::vector<cluster::CheckedHost>& checked,
                                         const KnownCheckpoint& checkpoint) const {
  cluster::Problems wrong = compare(checked, options_.threads).wrong;
  for (const cluster::CheckedHost& host : checked) {
    if (!training_.resume.empty() || !host.facts || !host.facts->output) continue;
    const std::string& there = host.facts->output->checkpoint;
    if (there.empty()) continue;
    wrong.push_back({host.name, fmt::format("{}: contains a run already ({}); add --resume to "
                                            "continue it, or choose another --output",
                                            training_.output, there)});
  }
  append(wrong, checkpoint.absent_tag(checked));
  append(wrong,
         cluster::problems_of(look_at_links(cluster::alike_hosts(checked, expected_)), ports()));
  look_at_this_machine(wrong);
  return wrong;
}

cluster::CheckFindings LaunchChecks::compare(const std::vector<cluster::CheckedHost>& checked,
                                             int threads) const {
  return cluster::compare_hosts(checked, options_.hosts,
                                {.bytes_per_rank = training_.bytes_per_rank,
                                 .checkpoint_bytes = training_.checkpoint_bytes,
                                 .threads = threads,
                                 .binds = options_.bind == LaunchOptions::Bind::kCore},
                                expected_);
}

void LaunchChecks::hold_to(const std::vector<cluster::CheckedHost>& checked) {
  const auto answered = std::ranges::find_if(
      checked, [](const cluster::CheckedHost& host) { return host.facts.has_value(); });
  if (answered != checked.end()) expected_.facts = *answered->facts;
  expected_.where = "when this launch began";
  expected_.remedy = "restore the previous content, or end this launch and start another";
}

void LaunchChecks::leave_out_unreached(cluster::Hosts& left) const {
  const cluster::LinkFindings found = look_at_links(cluster::names_of(left));
  for (const cluster::Problem& problem : cluster::problems_of(found, ports())) {
    log_warning("{}: {}", problem.place, problem.what);
  }
  for (const std::string& name : cluster::hosts_to_leave_out(found, cluster::names_of(left))) {
    log_warning("{} is excluded: not all others reach it", name);
    std::erase_if(left, [&](const cluster::Host& host) { return host.name == name; });
  }
}

std::vector<cluster::PortRange> LaunchChecks::ports() const {
  const cluster::ChosenStarter& starter = options_.starter;
  return cluster::mpi_ports(starter.starter, starter.version.major,
                            [this](const std::string& name) -> std::string {
                              for (const std::string& variable : options_.variables) {
                                if (variable.starts_with(name + "="))
                                  return variable.substr(name.size() + 1);
                              }
                              const char* value = std::getenv(name.c_str());
                              return value == nullptr ? "" : value;
                            });
}

cluster::LinkFindings LaunchChecks::look_at_links(const std::vector<std::string>& hosts) const {
  return cluster::check_links({.agent = options_.agent,
                               .hosts = hosts,
                               .program = options_.program,
                               .folder = options_.folder,
                               .interface = options_.interface,
                               .ranges = ports()},
                              interrupted_);
}

// A starter treats two names of one machine as one host and misses the slots of the other name. The
// launcher keeps the logs of a run in the run's folder on this machine.
void LaunchChecks::look_at_this_machine(cluster::Problems& problems) const {
  std::vector<std::string> here;
  int ranks = 0;
  for (const cluster::Host& host : options_.hosts) {
    if (!cluster::runs_here(options_.agent, host.name)) continue;
    here.push_back(host.name);
    ranks += host.ranks();
  }
  if (here.size() > 1) {
    problems.push_back(
        {here.back(),
         fmt::format("{} are this machine: list it once, with all of its ranks ({}:{})",
                     listed(here), here.front(), ranks)});
  }
  if (options_.checks && !here.empty()) return;  // the host check covers the folder
  try {
    require_writable(Path(options_.folder) / training_.output);
  } catch (const Error& error) {
    problems.push_back({"this machine", fmt::format("{} (logs are kept there)", error.what())});
  }
}

}  // namespace onebit::launch
