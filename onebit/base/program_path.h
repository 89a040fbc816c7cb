// Programs that this one starts, or reports the absence of.
#pragma once

#include <optional>
#include <string>

#include "onebit/base/file.h"

namespace onebit {

// Where a shell would find `program`, a name without folders: the first folder of PATH that holds a
// file of this name which may be executed; an empty entry of PATH is the working directory.
std::optional<Path> path_of_program(const std::string& program);

}  // namespace onebit
