#include "onebit/cluster/batch_fit.h"

#include <fmt/format.h>

#include <algorithm>

namespace onebit::cluster {

BatchFit fit_batch(const engine::BatchSizes& planned, int most) {
  int ranks = std::max(1, most);
  while (planned.train % ranks != 0) --ranks;
  const int64_t of_one_rank = planned.train / ranks;
  int64_t micro = std::min(planned.micro, of_one_rank);
  while (of_one_rank % micro != 0) --micro;
  return {.ranks = ranks,
          .sizes = {.train = planned.train, .micro = micro, .accumulation = of_one_rank / micro}};
}

Words overrides_of(const engine::BatchSizes& sizes) {
  return {"--set", fmt::format("train_batch_size={}", sizes.train),
          "--set", fmt::format("train_micro_batch_size_per_gpu={}", sizes.micro),
          "--set", fmt::format("gradient_accumulation_steps={}", sizes.accumulation)};
}

void keep_ranks(Hosts& hosts, int ranks) {
  for (int surplus = count_ranks(hosts) - ranks; surplus > 0; --surplus) {
    hosts.back().slots.pop_back();
    if (hosts.back().slots.empty()) hosts.pop_back();
  }
}

}  // namespace onebit::cluster
