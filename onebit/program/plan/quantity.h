// Quantities as a user writes and reads them: bandwidths, latencies, durations.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace onebit::plan {

// Parses "10Gb/s", "100 Mb/s", "1gbit" (bits) and "1.25GB/s" (bytes) into bytes per second: b, bit
// and B with the decimal prefixes k, M, G, T. Empty for any other text, and below 1 kb/s or above
// 100 Tb/s, which no host has.
std::optional<double> parse_bandwidth(std::string_view text);
inline constexpr const char* kBandwidthForm =
    "a number with kb/s, Mb/s, Gb/s (bits) or kB/s, MB/s, GB/s (bytes), from 1 kb/s to 100 Tb/s, "
    "as in 10Gb/s";

// Parses "50us", "0.2 ms", "1s" and "800ns" into seconds. Empty for any other text, for negative
// values and for more than a minute.
std::optional<double> parse_latency(std::string_view text);
inline constexpr const char* kLatencyForm =
    "a number from 0 with ns, us, ms or s, at most a minute, as in 50us";

// Parses "90", "90s", "1.5m", "10min", "2h" and "500ms" into seconds. Empty for any other text and
// for values that are not positive.
std::optional<double> parse_duration(std::string_view text);

// Durations up to the age of the universe: "3h 05m", "12d 04h", "5.3 years".
inline constexpr double kDay = 86400, kYear = 365.25 * kDay;

std::string long_duration(double seconds);

}  // namespace onebit::plan
