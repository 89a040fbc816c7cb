#include "onebit/exchange/optim/exchange_options.h"

#include <fmt/format.h>

namespace onebit::optim {

ExchangeOptions read_exchange_options(Keys& params, double beta2) {
  ExchangeOptions options;
  params.require(beta2 > 0, "betas",
                 "ends with 0: the variance would be that of a single gradient, and only its signs "
                 "would be left after the division; give a second number above 0, such as 0.999");
  params.counts("exp_avg_mask", options.moving_rows,
                "{tensor name: number of rows that are updated}. Later rows do not change in the "
                "compressed phase");
  params.fixed("eps_inside_sqrt", false, "eps is added outside the root");
  return options;
}

std::vector<std::pair<std::string, std::string>> compressed_phase_rows(const FreezeOptions& options,
                                                                       double beta2,
                                                                       const RunFacts& run,
                                                                       int world_size) {
  const std::string when = describe(options, beta2, run);
  return {{"compressed phase",
           world_size == 1 ? fmt::format("a run on one rank sends nothing; {}{}",
                                         run.compressed ? "frozen " : "freeze ", when)
                           : fmt::format("{}{}; gradient / sqrt(variance) at one bit per element",
                                         run.compressed ? "started " : "", when)}};
}

}  // namespace onebit::optim
