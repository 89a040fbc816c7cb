// The checks of `onebit launch` before it starts ranks: the state of the hosts, the run's
// requirements, whether hosts reach each other, and this machine.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/program/cluster/host_check.h"
#include "onebit/program/cluster/link_check.h"
#include "onebit/program/cluster/mpi_ports.h"
#include "onebit/program/launch/known_checkpoint.h"
#include "onebit/program/launch/launcher.h"

namespace onebit::launch {

class LaunchChecks {
 public:
  // Keeps references to `options` and `training`. `interrupted` ends a check early, with the
  // findings so far.
  LaunchChecks(const LaunchOptions& options, const TrainingCommand& training,
               std::function<bool()> interrupted)
      : options_(options),
        training_(training),
        expected_{.facts = options.own, .where = "on this machine", .remedy = "copy it from here"},
        interrupted_(std::move(interrupted)) {}

  // Asks the hosts of the options for their facts.
  std::vector<cluster::CheckedHost> ask() const;
  // The problems, for a table for the user, that prevent the run from starting on these hosts. If
  // `checked` is empty, only the problems of this machine.
  cluster::Problems problems(const std::vector<cluster::CheckedHost>& checked,
                             const KnownCheckpoint& checkpoint) const;
  // Compares the hosts (host_check.h). `threads` is per rank. 0: not chosen yet.
  cluster::CheckFindings compare(const std::vector<cluster::CheckedHost>& checked,
                                 int threads = 0) const;
  // From now on programs and inputs must equal the ones of these hosts, which are alike: a launch
  // never continues with other ones, whatever changes before a restart.
  void hold_to(const std::vector<cluster::CheckedHost>& checked);
  // Removes hosts that others cannot reach at the ports of the run, with warnings.
  void leave_out_unreached(cluster::Hosts& left) const;

 private:
  std::vector<cluster::PortRange> ports() const;
  cluster::LinkFindings look_at_links(const std::vector<std::string>& hosts) const;
  void look_at_this_machine(cluster::Problems& problems) const;

  const LaunchOptions& options_;
  const TrainingCommand& training_;
  cluster::Expected expected_;
  std::function<bool()> interrupted_;
};

}  // namespace onebit::launch
