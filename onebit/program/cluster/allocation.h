// The hosts that a batch system (Slurm, PBS) has allocated to this job, read from its environment
// variables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/program/cluster/host_list.h"

namespace onebit::cluster {

struct Allocation {
  std::string system;  // "Slurm", "PBS"
  std::string job;     // the job's id
  Hosts hosts;
  int threads = 0;  // per rank. 0: not set by the job
};

// Looks up an environment variable, or null if it is not set.
using Environment = std::function<const char*(const char* name)>;

// Expands Slurm's node list, "n[01-03,07],m2-ib". A name may have several brackets. Errors: an
// unclosed bracket, a malformed range.
std::vector<std::string> expand_node_list(const std::string& text);
// Expands Slurm's counts: "2(x3),1" gives 2, 2, 2, 1. Error: any other form.
std::vector<int> expand_counts(const std::string& text, const std::string& name);

// Slurm: the hosts of SLURM_JOB_NODELIST, with the slots of SLURM_TASKS_PER_NODE or
// SLURM_NTASKS_PER_NODE (1 if neither is set). PBS: the file PBS_NODEFILE, one line per slot. Empty
// outside of a job. Errors: contradictory variables, an unreadable file.
std::optional<Allocation> find_allocation(const Environment& environment);

}  // namespace onebit::cluster
