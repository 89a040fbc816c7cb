// A count and its noun in a message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace onebit {

// "1 rank", "3 ranks".
std::string counted(int64_t count, std::string_view noun);

}  // namespace onebit
