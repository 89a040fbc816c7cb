#include "tests/deepspeed/local_gradients.h"

#include <array>

#include "onebit/math/ops/reduce.h"

namespace onebit::deepspeed {

bool all_are_finite(Context& context, const ParameterTable& table, comm::Communicator& communicator,
                    const optim::StepInput& input, optim::StepReport& report) {
  const bool finite = ops::all_finite(context, table.gradients());
  const double scale = input.gradient_scale;
  std::array<double, 2> sums{
      finite ? 0.0 : 1.0,
      finite ? scale * scale * ops::squared_norm(context, table.gradients()) : 0.0};
  communicator.all_reduce(std::span<double>(sums), comm::Reduction::kSum);
  report.local_gradient_square = sums[1] / communicator.world_size();
  report.applied = sums[0] == 0;
  return report.applied;
}

}  // namespace onebit::deepspeed
