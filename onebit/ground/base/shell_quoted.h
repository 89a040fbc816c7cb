// Words of command lines that a user may copy.
#pragma once

#include <string>
#include <string_view>

namespace onebit {

// The word, quoted if a POSIX shell would read it differently otherwise.
std::string shell_quoted(std::string_view word);

}  // namespace onebit
