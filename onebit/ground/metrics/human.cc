#include "onebit/ground/metrics/human.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace onebit::metrics {
namespace {

// Three digits: "1.53", "15.3", "153". Bounds are where rounding would give a fourth.
std::string three_digits(double value) {
  const double size = std::abs(value);
  return size < 9.995 ? fmt::format("{:.2f}", value)
                      : fmt::format("{:.{}f}", value, size < 99.95 ? 1 : 0);
}

// `value` in the largest unit that keeps it at 1 or more. Whole numbers stay in the first unit.
template <size_t N>
std::string scaled(double value, const std::array<std::string_view, N>& units) {
  if (!std::isfinite(value)) return "-";
  size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < N) {
    value /= 1000;
    ++unit;
  }
  const bool whole = unit == 0 && value == std::floor(value);
  return (whole ? fmt::format("{:.0f}", value) : three_digits(value)) + std::string(units[unit]);
}

std::string two_parts(int64_t count, int64_t base, std::string_view large, std::string_view small) {
  return fmt::format("{}{} {:02}{}", count / base, large, count % base, small);
}

}  // namespace

std::string human_bytes(double bytes) {
  return scaled<6>(bytes, {" B", " kB", " MB", " GB", " TB", " PB"});
}

std::string human_count(double count) {
  return scaled<5>(count, {"", "k", "M", "G", "T"});
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 0) return fmt::format("-{}", human_duration(-seconds));
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 59.95) return three_digits(seconds) + " s";
  if (seconds > 1e14) return "-";
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return two_parts(whole, 60, "m", "s");
  if (whole < 86400) return two_parts(whole / 60, 60, "h", "m");
  return two_parts(whole / 3600, 24, "d", "h");
}

}  // namespace onebit::metrics
