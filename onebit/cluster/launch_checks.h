// What `onebit launch` looks at before it starts ranks: the hosts as they are, what the run needs
// of them, whether they reach each other, and this machine.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/cluster/host_check.h"
#include "onebit/cluster/known_checkpoint.h"
#include "onebit/cluster/launcher.h"
#include "onebit/cluster/link_check.h"
#include "onebit/cluster/mpi_ports.h"

namespace onebit::cluster {

class LaunchChecks {
 public:
  // All are kept. `interrupted` ends a look early, with what is known by then.
  LaunchChecks(const LaunchOptions& options, const TrainingCommand& training,
               std::function<bool()> interrupted)
      : options_(options),
        training_(training),
        expected_{.facts = options.own, .where = "on this machine", .remedy = "copy it from here"},
        interrupted_(std::move(interrupted)) {}

  // What the hosts of the options report.
  std::vector<CheckedHost> ask() const;
  // What keeps the run from being started on them, as a table for the user; without `checked`
  // that of this machine alone.
  Problems problems(const std::vector<CheckedHost>& checked,
                    const KnownCheckpoint& checkpoint) const;
  // `threads` of a rank; 0: not chosen yet.
  CheckFindings compare(const std::vector<CheckedHost>& checked, int threads = 0) const;
  // From now on programs and inputs must be those of these hosts, which are alike: a launch trains
  // one thing, whatever changes before a restart.
  void hold_to(const std::vector<CheckedHost>& checked);
  // Removes, with warnings, hosts that others do not reach at the ports of a run.
  void leave_out_unreached(Hosts& left) const;

 private:
  std::vector<PortRange> ports() const;
  LinkFindings look_at_links(const std::vector<std::string>& hosts) const;
  void look_at_this_machine(Problems& problems) const;

  const LaunchOptions& options_;
  const TrainingCommand& training_;
  Expected expected_;
  std::function<bool()> interrupted_;
};

}  // namespace onebit::cluster
