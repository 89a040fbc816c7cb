#pragma once

#include <string>
#include <string_view>

namespace onebit::formats {

// A name from a file, made safe for an error message: in quotes, control characters and broken
// UTF-8 as \xNN, cut after 120 bytes. A file must not control the terminal.
std::string quote(std::string_view name);

}  // namespace onebit::formats
