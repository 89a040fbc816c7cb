#include "onebit/exchange/optim/compressed_recipe.h"

namespace onebit::optim {

std::unique_ptr<Optimizer> CompressedRecipe::make(const ParameterTable& table,
                                                  comm::Communicator& communicator,
                                                  const RunFacts& run) const {
  return std::make_unique<CompressedOptimizer>(options_, table, communicator, run);
}

StateLayout CompressedRecipe::state_layout(const ParameterTable& table,
                                           const StateDivision& division) const {
  return CompressedOptimizer::layout(options_, table, division);
}

std::vector<std::pair<std::string, std::string>> CompressedRecipe::rows(const RunFacts& run,
                                                                        int world_size) const {
  return compressed_phase_rows(options_.freeze, options_.adam.beta2, run, world_size);
}

std::vector<std::string> CompressedRecipe::warnings(const RunFacts& run) const {
  return freeze_warnings(options_.freeze, options_.adam.beta2, run);
}

std::optional<int64_t> CompressedRecipe::last_dense_update(const RunFacts& run) const {
  return last_warmup_update(options_.freeze, options_.adam.beta2, run);
}

}  // namespace onebit::optim
