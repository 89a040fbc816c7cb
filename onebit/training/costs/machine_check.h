// Finds what this program offers on a machine, what is likely to make training slow or fail there,
// and how to fix it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/ground/base/machine.h"
#include "onebit/math/device/context.h"

namespace onebit::costs {

// The inputs of the checks besides the machine.
struct ProgramFacts {
  int threads = 1;                    // compute threads of a rank
  std::string mpi_problem;            // why MPI cannot be used, "" if it can
  bool has_mpirun = false;            // in PATH
  bool has_cuda = false;              // built in
  int cuda_devices = 0;               // seen by the program
  bool native_bf16 = false;           // the processor multiplies bf16 itself
  std::string onednn_limit;           // ONEDNN_MAX_CPU_ISA or its old name, where set
  std::optional<int> openmp_threads;  // OMP_NUM_THREADS, where set
  std::string int8_problem;           // why products of int8 are not possible, "" if they are
  // Operations per second of products in f32, bf16 and int8, bytes per second of copies, 0 if
  // unknown.
  double f32 = 0, bf16 = 0, int8 = 0, memory = 0;
};

// One sentence for each finding: what looks wrong, and what to do.
std::vector<std::string> concerns(const Machine& machine, const ProgramFacts& program);

// The facts that need no measurement. f32, bf16 and memory are 0.
ProgramFacts program_facts(Context& context);
// Measures f32, bf16 (where it is native) and memory, which takes two seconds.
void measure_speed(Context& context, ProgramFacts& program);

}  // namespace onebit::costs
