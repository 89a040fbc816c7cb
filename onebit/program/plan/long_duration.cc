#include "onebit/program/plan/long_duration.h"

#include <fmt/format.h>

#include "onebit/ground/metrics/human.h"

namespace onebit::plan {

std::string long_duration(double seconds) {
  const double years = seconds / kYear;
  if (years < 2) return metrics::human_duration(seconds);
  return years < 100 ? fmt::format("{:.1f} years", years) : fmt::format("{:.0f} years", years);
}

}  // namespace onebit::plan
