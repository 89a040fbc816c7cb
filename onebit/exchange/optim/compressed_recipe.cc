#include "onebit/exchange/optim/compressed_recipe.h"

namespace onebit::optim {

std::unique_ptr<Optimizer> CompressedRecipe::make(const ParameterTable& table,
                                                  comm::Communicator& communicator,
                                                  const RunFacts& run) const {
  return std::make_unique<CompressedOptimizer>(options_, table, communicator, run);
}

int64_t CompressedRecipe::state_bytes(const ParameterTable& table, int world_size,
                                      const RunFacts& run) const {
  return CompressedOptimizer::state_bytes_of(options_, table, world_size, run);
}

int64_t CompressedRecipe::most_saved_bytes(const ParameterTable& table, int world_size,
                                           const RunFacts& run) const {
  const auto last = last_dense_update(run);
  const bool compresses = last && *last < run.total_steps;
  return CompressedOptimizer::most_saved_bytes_of(options_, table, world_size, compresses);
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
