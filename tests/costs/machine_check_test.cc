#include "onebit/training/costs/machine_check.h"

#include <gmock/gmock.h>

#include <functional>

namespace onebit::costs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Machine good_machine() {
  return {.processor = "P",
          .processors = 8,
          .cores = 8,
          .allowed_processors = 8,
          .allowed_cores = 8,
          .numa_nodes = 1,
          .governor = "performance",
          .load = 0.2,
          .memory_bytes = int64_t{64} << 30,
          .available_bytes = int64_t{60} << 30,
          .shared_memory_bytes = int64_t{30} << 30};
}

ProgramFacts good_program() {
  return {.threads = 8,
          .mpi_problem = "",
          .has_mpirun = true,
          .onednn_limit = "",
          .openmp_threads = {}};
}

TEST(MachineCheck, says_nothing_of_a_good_machine) {
  EXPECT_THAT(concerns(good_machine(), good_program()), IsEmpty());
}

// One thing wrong at a time: exactly one sentence, with what to do.
struct Flaw {
  std::string name;
  std::function<void(Machine&, ProgramFacts&)> make;
  std::string found, advice;
};

class MachineFlaws : public testing::TestWithParam<Flaw> {};

TEST_P(MachineFlaws, are_named_with_what_to_do) {
  Machine machine = good_machine();
  ProgramFacts program = good_program();
  GetParam().make(machine, program);
  EXPECT_THAT(
      concerns(machine, program),
      ElementsAre(testing::AllOf(HasSubstr(GetParam().found), HasSubstr(GetParam().advice))));
}

INSTANTIATE_TEST_SUITE_P(
    All, MachineFlaws,
    testing::Values(
        Flaw{"bound",
             [](Machine& m, ProgramFacts& s) {
               m.allowed_processors = m.allowed_cores = 1;
               s.threads = 1;
             },
             "1 of 8 processors", "--bind-to none"},
        Flaw{"quota", [](Machine& m, ProgramFacts&) { m.quota_processors = 2.5; },
             "allows 2.5 processors", "--threads 2"},
        Flaw{"hardware_threads", [](Machine& m, ProgramFacts&) { m.allowed_cores = m.cores = 4; },
             "8 threads share 4 cores", "--threads 4"},
        Flaw{"load", [](Machine& m, ProgramFacts&) { m.load = 5; }, "5.0 tasks", "slowest"},
        Flaw{"governor", [](Machine& m, ProgramFacts&) { m.governor = "powersave"; }, "powersave",
             "cpupower"},
        Flaw{"numa", [](Machine& m, ProgramFacts&) { m.numa_nodes = 2; }, "2 memory nodes",
             "--map-by numa"},
        Flaw{"memory", [](Machine& m, ProgramFacts&) { m.available_bytes = 1 << 30; },
             "1.07 GB of memory", "3 GB per rank"},
        Flaw{"memory_limit", [](Machine& m, ProgramFacts&) { m.limit_bytes = int64_t{8} << 30; },
             "allows 8.59 GB", "plan"},
        Flaw{"shared_memory", [](Machine& m, ProgramFacts&) { m.shared_memory_bytes = 0; },
             "/dev/shm", "--shm-size"},
        Flaw{"onednn", [](Machine&, ProgramFacts& s) { s.onednn_limit = "AVX2"; },
             "limited to AVX2", "unset"},
        Flaw{"openmp", [](Machine&, ProgramFacts& s) { s.openmp_threads = 2; },
             "OMP_NUM_THREADS is 2", "--threads decides"},
        Flaw{"mpirun", [](Machine&, ProgramFacts& s) { s.has_mpirun = false; }, "not in PATH",
             "openmpi-bin"},
        Flaw{"mpi",
             [](Machine&, ProgramFacts& s) { s.mpi_problem = "built without MPI: install it"; },
             "without MPI", "install it"},
        Flaw{"cuda", [](Machine& m, ProgramFacts&) { m.has_nvidia_device = true; }, "without CUDA",
             "-DONEBIT_CUDA=ON"},
        Flaw{"driver",
             [](Machine& m, ProgramFacts& s) {
               m.has_nvidia_device = true;
               s.has_cuda = true;
             },
             "CUDA finds none", "nvidia-smi"},
        Flaw{"slow_bf16",
             [](Machine&, ProgramFacts& s) {
               s.native_bf16 = true;
               s.f32 = 2e12;
               s.bf16 = 1e12;
             },
             "slower than in f32", "bf16.enabled"}),
    [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace onebit::costs
