// The options of the exchange of every 1-bit optimizer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "onebit/base/keys.h"
#include "onebit/optim/freeze_rule.h"
#include "onebit/optim/optimizer_recipe.h"

namespace onebit::optim {

struct ExchangeOptions {
  // exp_avg_mask: maps a tensor to the number of rows that move in the compressed phase; later rows
  // stay still.
  std::map<std::string, int64_t> moving_rows;
};

// Their keys of optimizer.params. What travels is the gradient over the root of its variance, which
// needs a memory: `beta2` must be above 0.
ExchangeOptions read_exchange_options(Keys& params, double beta2);
// The compressed phase in the table at the start, of an optimizer with a freeze.
std::vector<std::pair<std::string, std::string>> compressed_phase_rows(const FreezeOptions& options,
                                                                       double beta2,
                                                                       const RunFacts& run,
                                                                       int world_size);

}  // namespace onebit::optim
