#include "onebit/exchange/optim/optimizer_recipe.h"

#include "onebit/exchange/compress/compressed_all_reduce.h"

namespace onebit::optim {
namespace {

StateSizes on_one_level(const OptimizerRecipe& recipe, const ParameterTable& table, int world_size,
                        const RunFacts& run) {
  const StateDivision division{
      {.buckets = compress::sized_buckets(table.size_elements(), world_size, run.bucket_bytes),
       .world_size = world_size}};
  return {recipe.state_layout(table, division), division};
}

}  // namespace

int64_t OptimizerRecipe::state_bytes(const ParameterTable& table, int world_size,
                                     const RunFacts& run) const {
  return on_one_level(*this, table, world_size, run).memory_bytes(Phase::kWarmup);
}

int64_t OptimizerRecipe::most_saved_bytes(const ParameterTable& table, int world_size,
                                          const RunFacts& run) const {
  const StateSizes sizes = on_one_level(*this, table, world_size, run);
  const int64_t before = sizes.saved_bytes(Phase::kWarmup);
  const auto last = last_dense_update(run);
  if (!last || *last >= run.total_steps) return before;
  return std::max(before, sizes.saved_bytes(Phase::kCompressed));
}

}  // namespace onebit::optim
