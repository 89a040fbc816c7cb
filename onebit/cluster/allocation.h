// Hosts that a batch system has given to this job: Slurm's and PBS's variables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/cluster/host_list.h"

namespace onebit::cluster {

struct Allocation {
  std::string system;  // "Slurm", "PBS"
  std::string job;     // its number
  Hosts hosts;
  int threads = 0;  // of a rank, where the job says so
};

// A variable of the environment; null where it is not set.
using Environment = std::function<const char*(const char* name)>;

// "n[01-03,07],m2-ib" as Slurm writes it, with several brackets in a name. Error: a bracket that
// does not close, a range that is none.
std::vector<std::string> expand_node_list(const std::string& text);
// "2(x3),1": 2, 2, 2, 1. Error: another form.
std::vector<int> expand_counts(const std::string& text, const std::string& name);

// Slurm: SLURM_JOB_NODELIST; a host has as many slots as SLURM_TASKS_PER_NODE (or
// SLURM_NTASKS_PER_NODE) says, 1 without. PBS: PBS_NODEFILE, a line a slot. Empty outside of a job.
// Errors: variables that contradict each other, a file that cannot be read.
std::optional<Allocation> find_allocation(const Environment& environment);

}  // namespace onebit::cluster
