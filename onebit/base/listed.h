// Names in a message, cut short where there are many.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace onebit {

// "a, b, c", with ", ..." in the place of what comes behind the first `most`.
std::string listed(std::span<const std::string> names, size_t most = 8);

}  // namespace onebit
