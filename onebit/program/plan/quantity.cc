#include "onebit/program/plan/quantity.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "onebit/ground/base/number.h"
#include "onebit/ground/metrics/human.h"

namespace onebit::plan {

namespace {

using Unit = std::pair<std::string_view, double>;

std::optional<double> parse(std::string_view text, std::span<const Unit> units) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !std::isfinite(value) || has_leading_zeros(text)) return std::nullopt;
  std::string_view unit(stop, static_cast<size_t>(end - stop));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, factor] : units) {
    if (unit == name) return value * factor;
  }
  return std::nullopt;
}

// The units after a prefix: bits and bytes per second, and tc's names for bits.
std::optional<double> parse_with_prefix(std::string_view text, std::string_view prefix,
                                        double factor) {
  constexpr Unit kUnits[] = {{"b/s", 0.125}, {"bit/s", 0.125}, {"bit", 0.125}, {"B/s", 1}};
  for (const auto& [name, bytes] : kUnits) {
    const std::string whole = std::string(prefix) + std::string(name);
    const Unit unit{whole, factor * bytes};
    if (const auto value = parse(text, std::span(&unit, 1))) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_bandwidth(std::string_view text) {
  constexpr double kMinBytes = 1e3 / 8, kMaxBytes = 100e12 / 8;
  constexpr Unit kPrefixes[] = {{"", 1},    {"k", 1e3}, {"K", 1e3}, {"M", 1e6},
                                {"m", 1e6}, {"G", 1e9}, {"g", 1e9}, {"T", 1e12}};
  for (const auto& [prefix, factor] : kPrefixes) {
    const auto bytes = parse_with_prefix(text, prefix, factor);
    if (bytes) return *bytes >= kMinBytes && *bytes <= kMaxBytes ? bytes : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> parse_latency(std::string_view text) {
  constexpr double kMaxSeconds = 60;
  constexpr Unit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const auto seconds = parse(text, kUnits);
  return seconds && *seconds >= 0 && *seconds <= kMaxSeconds ? seconds : std::nullopt;
}

std::optional<double> parse_duration(std::string_view text) {
  constexpr Unit kUnits[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
  if (text.find(' ') != std::string_view::npos) return std::nullopt;
  const auto seconds = parse(text, kUnits);
  return seconds && std::isfinite(*seconds) && *seconds > 0 ? seconds : std::nullopt;
}

std::string long_duration(double seconds) {
  const double years = seconds / kYear;
  if (years < 2) return metrics::human_duration(seconds);
  return years < 100 ? fmt::format("{:.1f} years", years) : fmt::format("{:.0f} years", years);
}

}  // namespace onebit::plan
