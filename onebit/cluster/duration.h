// Durations as a user writes them.
#pragma once

#include <optional>
#include <string_view>

namespace onebit::cluster {

// Seconds of "90", "90s", "1.5m", "10min", "2h", "500ms"; empty for anything else, and for what is
// not above 0.
std::optional<double> parse_duration(std::string_view text);

}  // namespace onebit::cluster
