#pragma once

#include <string>
#include <string_view>

namespace onebit::formats {

// A name from a file as it may stand in an error: in quotes, control characters and broken UTF-8 as
// \xNN, cut after 120 bytes. Files are not trusted, terminals are.
std::string quote(std::string_view name);

}  // namespace onebit::formats
