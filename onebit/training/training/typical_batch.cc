#include "onebit/training/training/typical_batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace onebit::training {

int64_t typical_micro_step(std::span<const int64_t> rows, int world_size, int64_t accumulation) {
  const auto ranks = static_cast<size_t>(world_size);
  const size_t micro_steps = rows.size() / ranks;
  const auto a_step = static_cast<size_t>(accumulation);
  double slowest = 0;  // rows per micro-step, mean over steps
  double steps = 0;
  for (size_t begin = 0; begin < micro_steps; begin += a_step, ++steps) {
    const size_t end = std::min(begin + a_step, micro_steps);
    std::vector<int64_t> sums(ranks);
    for (size_t i = begin * ranks; i < end * ranks; ++i) sums[i % ranks] += rows[i];
    slowest += static_cast<double>(*std::max_element(sums.begin(), sums.end())) /
               static_cast<double>(end - begin);
  }
  slowest /= steps;
  const double mean = static_cast<double>(std::accumulate(rows.begin(), rows.end(), int64_t{0})) /
                      static_cast<double>(rows.size());
  const auto distance = [&](size_t micro_step) {
    const auto of_ranks = rows.subspan(micro_step * ranks, ranks);
    const auto most = static_cast<double>(*std::max_element(of_ranks.begin(), of_ranks.end()));
    const auto all =
        static_cast<double>(std::accumulate(of_ranks.begin(), of_ranks.end(), int64_t{0}));
    return std::abs(most - slowest) + std::abs(all / static_cast<double>(ranks) - mean);
  };
  size_t nearest = 0;
  for (size_t i = 1; i < micro_steps; ++i) {
    if (distance(i) < distance(nearest)) nearest = i;
  }
  return static_cast<int64_t>(nearest);
}

int64_t typical_micro_step(const std::function<int64_t(int64_t index)>& rows_of,
                           int64_t accumulation, comm::Communicator& communicator) {
  constexpr int64_t kMax = 32;
  const int64_t micro_steps =
      accumulation < kMax ? kMax / accumulation * accumulation : kMax;  // whole steps
  const int64_t ranks = communicator.world_size();
  std::vector<int64_t> rows(static_cast<size_t>(micro_steps * ranks));
  for (int64_t i = 0; i < micro_steps; ++i) {
    rows[static_cast<size_t>(i * ranks + communicator.rank())] = rows_of(i);
  }
  communicator.all_reduce(std::span<int64_t>(rows), comm::Reduction::kSum);
  return typical_micro_step(rows, communicator.world_size(), accumulation);
}

}  // namespace onebit::training
