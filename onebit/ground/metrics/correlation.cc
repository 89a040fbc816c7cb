#include "onebit/ground/metrics/correlation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "onebit/ground/base/error.h"

namespace onebit::metrics {
namespace {

std::vector<double> without_mean(std::span<const double> values) {
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  std::vector<double> centred(values.begin(), values.end());
  for (double& value : centred) value -= mean;
  return centred;
}

double norm_of(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

bool is_constant(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [&](double value) { return value == values.front(); });
}

bool has_nan(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

}  // namespace

double pearson_correlation(std::span<const double> x, std::span<const double> y) {
  ONEBIT_INVARIANT(x.size() == y.size());
  if (x.size() < 2 || is_constant(x) || is_constant(y)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const std::vector<double> a = without_mean(x), b = without_mean(y);
  const double product = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  return std::clamp(product / norm_of(a) / norm_of(b), -1.0, 1.0);
}

std::vector<double> mean_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    for (; begin < end; ++begin) ranks[order[begin]] = rank;
  }
  return ranks;
}

double spearman_correlation(std::span<const double> x, std::span<const double> y) {
  // What is no number has no rank, and sorting it would be undefined.
  if (has_nan(x) || has_nan(y)) return std::numeric_limits<double>::quiet_NaN();
  return pearson_correlation(mean_ranks(x), mean_ranks(y));
}

double mean_squared_error(std::span<const double> x, std::span<const double> y) {
  ONEBIT_INVARIANT(x.size() == y.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum / static_cast<double>(x.size());
}

}  // namespace onebit::metrics
