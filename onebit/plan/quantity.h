// Quantities of a network as a user writes them.
#pragma once

#include <optional>
#include <string_view>

namespace onebit::plan {

// Bytes a second of "10Gb/s", "100 Mb/s", "1gbit" (bits), "1.25GB/s" (bytes): b, bit and B with
// the prefixes k, M, G, T of a thousand each. Empty for anything else, and for less than 1 kb/s and
// more than 100 Tb/s, which no host has.
std::optional<double> parse_bandwidth(std::string_view text);
inline constexpr const char* kBandwidthForm =
    "a number with kb/s, Mb/s, Gb/s (bits) or kB/s, MB/s, GB/s (bytes), from 1 kb/s to 100 Tb/s, "
    "as in 10Gb/s";

// Seconds of "50us", "0.2 ms", "1s", "800ns"; empty for anything else, a negative one and more than
// a minute.
std::optional<double> parse_latency(std::string_view text);
inline constexpr const char* kLatencyForm =
    "a number from 0 with ns, us, ms or s, at most a minute, as in 50us";

}  // namespace onebit::plan
