#include "onebit/training/costs/machine_check.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "onebit/exchange/transport/mpi_communicator.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/math/device/libraries.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/ops/int8_linear.h"
#include "onebit/math/ops/linear.h"
#include "onebit/training/costs/machine_costs.h"

namespace onebit::costs {
namespace {

using metrics::human_bytes;

void check_processors(const Machine& machine, const ProgramFacts& program,
                      std::vector<std::string>& found) {
  if (machine.allowed_processors < machine.processors) {
    found.push_back(fmt::format(
        "this process may use {} of {} processors: under mpirun add --bind-to none for one rank "
        "per machine, or --map-by slot:PE=N for several; elsewhere see taskset and the cpuset of "
        "the container",
        machine.allowed_processors, machine.processors));
  }
  if (machine.quota_processors > 0 &&
      machine.quota_processors < static_cast<double>(program.threads)) {
    found.push_back(fmt::format(
        "the control group allows {:.1f} processors, and a rank would use {} threads: threads wait "
        "for each other while one is throttled; give --threads {}",
        machine.quota_processors, program.threads,
        std::max(1, static_cast<int>(machine.quota_processors))));
  }
  if (machine.allowed_cores > 0 && program.threads > machine.allowed_cores) {
    found.push_back(fmt::format(
        "{} threads share {} cores: products gain nothing from a second thread of a core; try "
        "--threads {}",
        program.threads, machine.allowed_cores, machine.allowed_cores));
  }
  if (machine.load > 0.5 * static_cast<double>(machine.processors)) {
    found.push_back(fmt::format(
        "{:.1f} tasks have been running on {} processors in the last minute: other work slows "
        "training down, and ranks wait for the slowest",
        machine.load, machine.processors));
  }
  if (machine.governor == "powersave" || machine.governor == "conservative") {
    found.push_back(
        fmt::format("the frequency governor is {}: cpupower frequency-set -g performance keeps "
                    "the clock of the processor high",
                    machine.governor));
  }
  if (machine.numa_nodes > 1) {
    found.push_back(
        fmt::format("the machine has {} memory nodes: start one rank on each "
                    "(mpirun --map-by numa --bind-to numa), so that memory is near its processor",
                    machine.numa_nodes));
  }
}

void check_libraries(const Machine& machine, const ProgramFacts& program,
                     std::vector<std::string>& found) {
  if (!program.onednn_limit.empty()) {
    found.push_back(fmt::format(
        "oneDNN is limited to {} by the environment (ONEDNN_MAX_CPU_ISA or DNNL_MAX_CPU_ISA): "
        "unset it for full speed",
        program.onednn_limit));
  }
  if (program.openmp_threads && *program.openmp_threads != program.threads) {
    found.push_back(fmt::format(
        "OMP_NUM_THREADS is {}, which has no effect: --threads decides, and would be {} here",
        *program.openmp_threads, program.threads));
  }
  if (program.mpi_problem.empty() && !program.has_mpirun) {
    found.emplace_back(
        "MPI can be used, but mpirun is not in PATH: install openmpi-bin (or the launcher of the "
        "MPI it was built with) to train on several ranks, or connect them by TCP");
  }
  if (!program.mpi_problem.empty()) found.push_back(program.mpi_problem);
  if (machine.has_nvidia_device && !program.has_cuda) {
    found.emplace_back(
        "there is an NVIDIA device, and this onebit is built without CUDA: install the CUDA "
        "toolkit and build again with -DONEBIT_CUDA=ON");
  }
  if (program.has_cuda && machine.has_nvidia_device && program.cuda_devices == 0) {
    found.emplace_back(
        "there is an NVIDIA device, but CUDA finds none: compare the driver's version in "
        "nvidia-smi with the toolkit's, and see CUDA_VISIBLE_DEVICES");
  }
}

void check_memory(const Machine& machine, std::vector<std::string>& found) {
  constexpr int64_t kMinMemory = int64_t{2} << 30, kMinShared = int64_t{64} << 20;
  if (machine.available_bytes > 0 && machine.available_bytes < kMinMemory) {
    found.push_back(fmt::format(
        "{} of memory is free: bert-base with 8 sequences of 128 needs about 3 GB per rank",
        human_bytes(static_cast<double>(machine.available_bytes))));
  }
  if (machine.limit_bytes > 0 && machine.limit_bytes < machine.memory_bytes) {
    found.push_back(
        fmt::format("the control group allows {} of the machine's {}: the memory plan in the "
                    "start table of training must fit into that",
                    human_bytes(static_cast<double>(machine.limit_bytes)),
                    human_bytes(static_cast<double>(machine.memory_bytes))));
  }
  if (machine.shared_memory_bytes < kMinShared) {
    found.push_back(fmt::format(
        "/dev/shm has {} free: several ranks on this machine exchange through it; in a container "
        "give --shm-size=1g",
        human_bytes(static_cast<double>(machine.shared_memory_bytes))));
  }
}

void check_speed(const ProgramFacts& program, std::vector<std::string>& found) {
  if (program.bf16 > 0 && program.native_bf16 && program.bf16 < program.f32) {
    found.emplace_back(
        "products in bf16 are slower than in f32 although the processor has the instructions: "
        "something else is running, or oneDNN is too old; set bf16.enabled to false in the recipe");
  }
}

}  // namespace

std::vector<std::string> concerns(const Machine& machine, const ProgramFacts& program) {
  std::vector<std::string> found;
  check_processors(machine, program, found);
  check_memory(machine, found);
  check_libraries(machine, program, found);
  check_speed(program, found);
  return found;
}

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<int> openmp_threads() {
  const std::string text = environment("OMP_NUM_THREADS");
  return whole_number<int>(text.substr(0, text.find(',')));  // the first level of nested loops
}

}  // namespace

ProgramFacts program_facts(Context& context) {
  std::string limit = environment("ONEDNN_MAX_CPU_ISA");
  if (limit.empty()) limit = environment("DNNL_MAX_CPU_ISA");
  return {.threads = context.threads(),
          .mpi_problem = transport::mpi_problem(),
          .has_mpirun = path_of_program("mpirun").has_value(),
          .has_cuda = cuda_version() != 0,
          .cuda_devices = memory::cuda_device_count(),
          .native_bf16 = ops::bf16_is_native(context),
          .onednn_limit = limit == "ALL" || limit == "DEFAULT" ? "" : limit,
          .openmp_threads = openmp_threads(),
          .int8_problem = ops::why_no_int8(context)};
}

void measure_speed(Context& context, ProgramFacts& program) {
  constexpr double kSeconds = 0.6;
  program.f32 = measure_product(context, DType::kF32, kSeconds);
  if (program.native_bf16) {
    program.bf16 = measure_product(context, DType::kBF16, kSeconds);
  }
  if (program.int8_problem.empty()) {
    program.int8 = measure_int8_product(context, kSeconds);
  }
  program.memory = measure_memory(context, kSeconds);
}

}  // namespace onebit::costs
