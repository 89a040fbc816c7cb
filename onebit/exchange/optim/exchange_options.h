// The options of the exchange, common to every 1-bit optimizer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/optim/freeze_rule.h"
#include "onebit/exchange/optim/optimizer_recipe.h"
#include "onebit/ground/recipe/keys.h"

namespace onebit::optim {

struct ExchangeOptions {
  // exp_avg_mask: maps a tensor to the number of rows that move in the compressed phase; later rows
  // stay still.
  std::map<std::string, int64_t> moving_rows;
};

// Reads their keys of optimizer.params. The exchange sends the gradient over the root of its
// variance, which must be an average over several updates: `beta2` must be above 0.
ExchangeOptions read_exchange_options(Keys& params, double beta2);
// The rows of the start table about the compressed phase, for an optimizer with a freeze.
std::vector<std::pair<std::string, std::string>> compressed_phase_rows(const FreezeOptions& options,
                                                                       double beta2,
                                                                       const RunFacts& run,
                                                                       int world_size);

}  // namespace onebit::optim
