// Formats a list of names for a message, truncated if it is long.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace onebit {

// "a, b, c", with ", ..." in place of the names after the first `most`.
std::string listed(std::span<const std::string> names, size_t most = 8);

}  // namespace onebit
