#include "onebit/program/launch/duration.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "onebit/ground/base/number.h"

namespace onebit::launch {

std::optional<double> parse_duration(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},   {"s", 1},    {"ms", 1e-3},
                                                            {"m", 60}, {"min", 60}, {"h", 3600}};
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || has_leading_zeros(text)) return std::nullopt;
  const std::string_view unit(stop, static_cast<size_t>(end - stop));
  for (const auto& [name, seconds] : kUnits) {
    const double total = value * seconds;
    if (unit == name && std::isfinite(total) && total > 0) return total;
  }
  return std::nullopt;
}

}  // namespace onebit::launch
