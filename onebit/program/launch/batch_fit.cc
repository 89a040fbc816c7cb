#include "onebit/program/launch/batch_fit.h"

#include <fmt/format.h>

#include <algorithm>

namespace onebit::launch {

BatchFit fit_batch(const engine::BatchSizes& planned, int most) {
  const auto ranks = static_cast<int>(std::clamp<int64_t>(most, 1, planned.train));
  BatchFit fit = {.ranks = ranks,
                  .sizes = engine::solve_batch_sizes(
                      {.train = planned.train, .micro = planned.micro, .uneven = true}, ranks,
                      "the batch of the run")};
  fit.sizes.uneven = planned.uneven || !fit.sizes.are_equal(ranks);
  return fit;
}

cluster::Words overrides_of(const engine::BatchSizes& sizes) {
  cluster::Words words = {
      "--set", fmt::format("train_batch_size={}", sizes.train),
      "--set", fmt::format("train_micro_batch_size_per_gpu={}", sizes.micro),
      "--set", fmt::format("gradient_accumulation_steps={}", sizes.accumulation)};
  if (sizes.uneven) words.insert(words.end(), {"--set", "run.uneven_batches=true"});
  return words;
}

void keep_ranks(cluster::Hosts& hosts, int ranks) {
  for (int surplus = cluster::count_ranks(hosts) - ranks; surplus > 0; --surplus) {
    hosts.back().slots.pop_back();
    if (hosts.back().slots.empty()) hosts.pop_back();
  }
}

namespace {

bool has(const cluster::Hosts& hosts, const std::string& name) {
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](const cluster::Host& host) { return host.name == name; });
}

// Whether `hosts` has both neighbours of the host in the ring.
bool stands_between(const cluster::Host& host, const cluster::Hosts& hosts,
                    const cluster::Hosts& planned) {
  const size_t count = planned.size();
  for (size_t i = 0; i < count; ++i) {
    if (planned[i].name != host.name) continue;
    return has(hosts, planned[(i + 1) % count].name) &&
           has(hosts, planned[(i + count - 1) % count].name);
  }
  return false;
}

}  // namespace

void keep_ranks_and_copies(cluster::Hosts& hosts, int ranks, const cluster::Hosts& planned) {
  for (int surplus = cluster::count_ranks(hosts) - ranks; surplus > 0; --surplus) {
    auto from = hosts.end() - 1;
    for (auto host = hosts.begin(); host != hosts.end(); ++host) {
      if (host->slots.size() >= from->slots.size() && host->slots.size() > 1) from = host;
    }
    if (from->slots.size() == 1) {
      for (auto host = hosts.begin(); host != hosts.end(); ++host) {
        if (stands_between(*host, hosts, planned)) from = host;
      }
    }
    from->slots.pop_back();
    if (from->slots.empty()) hosts.erase(from);
  }
}

}  // namespace onebit::launch
