#include "onebit/training/costs/program_facts.h"

#include <cstdlib>
#include <optional>
#include <string>

#include "onebit/exchange/transport/mpi_communicator.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/number.h"
#include "onebit/math/device/libraries.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/ops/int8_linear.h"
#include "onebit/math/ops/linear.h"
#include "onebit/training/costs/machine_costs.h"

namespace onebit::costs {
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
