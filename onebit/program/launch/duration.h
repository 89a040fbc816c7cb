// Durations as a user writes them.
#pragma once

#include <optional>
#include <string_view>

namespace onebit::launch {

// Parses "90", "90s", "1.5m", "10min", "2h" and "500ms" into seconds. Empty for any other text and
// for values that are not positive.
std::optional<double> parse_duration(std::string_view text);

}  // namespace onebit::launch
