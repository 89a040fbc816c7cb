// What the operating system reports about this machine: processors, which of them this process may
// use, memory, what this process was started with. The source is /proc, /sys and the affinity mask
// of the process. A value that cannot be read keeps its default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onebit/ground/base/file.h"

namespace onebit {

struct Machine {
  std::string processor;            // "AMD EPYC 7713 64-Core Processor"
  int64_t processors = 0;           // online hardware threads
  int64_t cores = 0;                // physical cores
  int64_t allowed_processors = 0;   // in this process's affinity mask
  int64_t allowed_cores = 0;        // physical cores of the allowed processors
  double quota_processors = 0;      // of the control group, where 0 is no limit
  int64_t numa_nodes = 0;           // NUMA nodes that have processors
  std::string governor;             // frequency governor of the first processor: "performance", ...
  double load = 0;                  // mean number of running tasks in the last minute
  int64_t memory_bytes = 0;         // of the machine
  int64_t available_bytes = 0;      // available without swapping
  int64_t limit_bytes = 0;          // of the control group, where 0 is no limit
  int64_t shared_memory_bytes = 0;  // free in /dev/shm
  bool has_nvidia_device = false;   // a device file of NVIDIA's driver exists
};

// The host name as the system reports it, with or without its domain, or "" if it is not known.
std::string host_name();

// The peak resident memory of this process, or 0 if it is not known.
int64_t peak_resident_bytes();

// `root` replaces "/" in tests. The affinity mask is always this process's.
Machine read_machine(const Path& root = "/");

// Whether this process was started to ignore the signal. `nohup` starts a program with SIGHUP
// ignored, and shells start background jobs of scripts with SIGINT ignored: a program that handles
// such a signal all the same ends when it must not.
bool is_ignored(int signal);

// Raises the number of files that this process may have open (ulimit -n) to `wanted`, as far as the
// system allows this user, and returns it. It is never raised further: some programs close every
// file that their limit allows when they start.
int64_t raise_open_files(int64_t wanted);

// Finds `program`, a name without folders, as a shell does: in the first folder of PATH that holds
// an executable file of this name. An empty entry of PATH is the working directory.
std::optional<Path> path_of_program(const std::string& program);

// 64 bits of the system's entropy, for example a process's name for itself: nobody can guess them,
// and two processes practically never draw the same number.
uint64_t random_id();

}  // namespace onebit
