#include "onebit/optim/exchange_options.h"

#include <fmt/format.h>

namespace onebit::optim {

ExchangeOptions read_exchange_options(Keys& params, double beta2) {
  ExchangeOptions options;
  params.require(beta2 > 0, "betas",
                 "ends with 0: the variance would be of one gradient, whose signs alone were left; "
                 "give a second number above 0, such as 0.999");
  params.counts("exp_avg_mask", options.moving_rows,
                "{tensor name: rows that move}; later rows stay still in the compressed phase");
  params.fixed("eps_inside_sqrt", false, "eps stands outside the root");
  return options;
}

std::vector<std::pair<std::string, std::string>> compressed_phase_rows(const FreezeOptions& options,
                                                                       double beta2,
                                                                       const RunFacts& run,
                                                                       int world_size) {
  const std::string when = describe(options, beta2, run);
  return {{"1-bit phase", world_size == 1
                              ? fmt::format("nothing to send on one rank; {}{}",
                                            run.compressed ? "frozen " : "freeze ", when)
                              : fmt::format("{}{}; gradient / sqrt(variance) at one bit an element",
                                            run.compressed ? "begun " : "", when)}};
}

}  // namespace onebit::optim
