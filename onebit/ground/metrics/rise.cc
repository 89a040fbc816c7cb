#include "onebit/ground/metrics/rise.h"

#include <algorithm>
#include <cmath>

namespace onebit::metrics {
namespace {

constexpr size_t kLeastPoints = 200, kLeastInPart = 10;
constexpr double kLeastRise = 0.1, kLeastErrors = 4;

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments_of(const Series& series, size_t begin, size_t end) {
  const auto count = static_cast<double>(end - begin);
  Moments found;
  for (size_t i = begin; i < end; ++i) found.mean += series[i].value / count;
  for (size_t i = begin; i < end; ++i) {
    const double off = series[i].value - found.mean;
    found.variance += off * off / (count - 1);
  }
  return found;
}

// The noise of a mean is taken from all parts, since the part with the least mean has the least
// variance as well. A divergence with a larger variance of its own counts that one.
std::optional<Rise> rise_over(const Series& series, size_t parts) {
  const size_t size = series.size() / parts;
  if (size < kLeastInPart) return std::nullopt;
  const size_t first = series.size() - size * parts;
  double pooled = 0;
  Rise rise{.least = INFINITY};
  Moments part;
  for (size_t i = 0; i < parts; ++i) {
    const size_t begin = first + i * size;
    part = moments_of(series, begin, begin + size);
    pooled += part.variance / static_cast<double>(parts);
    if (i + 1 == parts || part.mean >= rise.least) continue;
    rise.least = part.mean;
    rise.least_step = series[begin + size / 2].step;
  }
  rise.end = part.mean;
  const double error =
      std::sqrt((pooled + std::max(pooled, part.variance)) / static_cast<double>(size));
  const double difference = rise.end - rise.least;
  if (!(difference > kLeastRise * std::abs(rise.least) && difference > kLeastErrors * error)) {
    return std::nullopt;
  }
  rise.errors = difference / error;
  return rise;
}

}  // namespace

std::optional<Rise> find_rise(const Series& series) {
  if (series.size() < kLeastPoints) return std::nullopt;
  for (const size_t parts : {20, 10, 6, 4}) {
    if (const auto rise = rise_over(series, parts)) return rise;
  }
  return std::nullopt;
}

}  // namespace onebit::metrics
