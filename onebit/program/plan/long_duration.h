// Durations up to the age of the universe: "3h 05m", "12d 04h", "5.3 years".
#pragma once

#include <string>

namespace onebit::plan {

inline constexpr double kDay = 86400, kYear = 365.25 * kDay;

std::string long_duration(double seconds);

}  // namespace onebit::plan
