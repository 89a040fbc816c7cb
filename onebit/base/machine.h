// What the operating system reports about this machine: processors, which of them this process may
// use, memory. Read from /proc, /sys and the process's own affinity mask; a value that cannot be
// read keeps its default.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/base/file.h"

namespace onebit {

struct Machine {
  std::string processor;            // "AMD EPYC 7713 64-Core Processor"
  int64_t processors = 0;           // online, hardware threads counted one by one
  int64_t cores = 0;                // physical ones among them
  int64_t allowed_processors = 0;   // in this process's affinity mask
  int64_t allowed_cores = 0;        // physical ones among those
  double quota_processors = 0;      // of the control group; 0: no limit
  int64_t numa_nodes = 0;           // with processors
  std::string governor;             // of the first processor's frequency: "performance", ...
  double load = 0;                  // mean number of running tasks in the last minute
  int64_t memory_bytes = 0;         // the machine's
  int64_t available_bytes = 0;      // without swapping
  int64_t limit_bytes = 0;          // of the control group; 0: no limit
  int64_t shared_memory_bytes = 0;  // free in /dev/shm
  bool has_nvidia_device = false;   // a device file of NVIDIA's driver
};

// As the system has it, with or without its domain; empty: not known.
std::string host_name();

// The most memory that this process has had in use at once; 0: not known.
int64_t peak_resident_bytes();

// `root` replaces "/" in tests; the affinity mask is this process's in any case.
Machine read_machine(const Path& root = "/");

}  // namespace onebit
